#!/usr/bin/perl
# An SMSC for one connection, made with Net::SMPP of libnet-smpp-perl. Every line that it prints is JSON: first the port that it listens on,
# then each bind and each submit_sm as Net::SMPP decoded it, the message in hexadecimal.
use strict;
use warnings;
use JSON::PP;
use Net::SMPP;

$| = 1;
my $json = JSON::PP->new->canonical->latin1;
my @BIND = qw(system_id password system_type interface_version addr_ton addr_npi address_range);
my @SUBMIT = qw(service_type source_addr_ton source_addr_npi source_addr dest_addr_ton dest_addr_npi destination_addr esm_class protocol_id
  priority_flag schedule_delivery_time validity_period registered_delivery replace_if_present_flag data_coding sm_default_msg_id);

my $listener = Net::SMPP->new_listen('localhost', port => 0, smpp_version => 0x34) or die "can't listen: $!";
print $json->encode({ port => $listener->sockport }), "\n";
my $peer;
until ($peer = $listener->accept) { }

my $count = 0;
while (my $pdu = $peer->read_pdu) {
  my $command = Net::SMPP::pdu_tab->{ $pdu->{cmd} }{cmd};
  if ($command eq 'bind_transceiver') {
    print $json->encode({ command => $command, map { $_ => $pdu->{$_} } @BIND }), "\n";
    $peer->set_version(0x34);
    $peer->bind_transceiver_resp(system_id => 'perl', seq => $pdu->{seq});
  } elsif ($command eq 'submit_sm') {
    my $message = unpack 'H*', $pdu->{short_message};
    print $json->encode({ command => $command, short_message => $message, map { $_ => $pdu->{$_} } @SUBMIT }), "\n";
    $count += 1;
    $peer->submit_sm_resp(message_id => "perl-$count", seq => $pdu->{seq});
  } elsif ($command eq 'unbind') {
    print $json->encode({ command => $command }), "\n";
    $peer->unbind_resp(seq => $pdu->{seq});
    last;
  }
}
