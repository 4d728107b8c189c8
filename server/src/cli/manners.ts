import { type Command, Help } from 'commander'
import { EXAMPLES } from './examples.ts'
import { nearest } from './nearest.ts'
import { printError } from './terminal.ts'

/** Sets up the errors, suggestions and help of a command and of all commands below it. `path`: the names of the commands above it. */
export function addManners(command: Command, path: string[] = []): void {
  const names = [...path, command.name()]
  command.exitOverride()
  // Commander would suggest "pause" for "unpause".
  command.showSuggestionAfterError(false)
  command.configureOutput({ outputError: (message) => printError([...message.trimEnd().split('\n'), ...suggestionsFor(command, message)]) })
  command.configureHelp({ commandUsage, optionDescription })
  const examples = examplesOf(command, names.slice(1))
  command.addHelpText('after', ['', examples.length === 1 ? 'Example:' : 'Examples:', ...examples.map((line) => `  ${line}`)].join('\n'))
  for (const each of command.commands) addManners(each, names)
}

/** A group shows the examples of its first commands. */
function examplesOf(command: Command, path: string[]): string[] {
  const own = EXAMPLES[path.join(' ')]
  return own === undefined ? command.commands.slice(0, 2).flatMap((each) => examplesOf(each, [...path, each.name()])) : [own].flat()
}

/** Commander's errors quote arguments unescaped; printError escapes them. */
function suggestionsFor(command: Command, message: string): string[] {
  const unknown = /^error: unknown (command|option) '([^']+)'/.exec(message)
  if (unknown === null) return [`See "${pathOf(command)} --help".`]
  const [, what, word = ''] = unknown
  const known =
    what === 'command'
      ? command.commands.flatMap((each) => [each.name(), ...each.aliases()])
      : command.options.flatMap(({ long }) => long?.replace(/^--/, '') ?? [])
  const found = nearest(word.replace(/^--?/, '').replace(/=.*/s, ''), known, command.name())
  const help = `See "${pathOf(command)} --help".`
  return [found === undefined ? help : `Did you mean "${what === 'option' ? '--' : ''}${found}"? ${help}`]
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

/** Names the required options, which Commander hides behind [options]. */
function commandUsage(this: Help, command: Command): string {
  const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags)
  return Help.prototype.commandUsage.call(this, command).replace('[options]', [...required, '[options]'].join(' '))
}

function optionDescription(this: Help, option: Parameters<Help['optionDescription']>[0]): string {
  const description = Help.prototype.optionDescription.call(this, option)
  return option.mandatory ? `${description} (required)` : description
}
