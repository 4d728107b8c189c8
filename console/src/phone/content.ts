/**
 * The content of a message, as the API takes it. The server's own types can't be imported, since they need the types of Node; a test compares
 * the two.
 */
export type Content =
  | { type: 'MESSAGE'; content: string; buttons?: Button[]; data?: object }
  | { type: 'AUDIO'; content?: string; buttons?: Button[]; data: { audioUrl: string } }
  | { type: 'VIDEO'; content?: string; buttons?: Button[]; data: { videoUrl: string; thumbnailUrl?: string } }
  | { type: 'FILE'; content?: string; buttons?: Button[]; data: { fileUrl: string; fileName?: string; thumbnailUrl?: string } }
  | { type: 'CARD'; content?: string; buttons?: Button[]; data?: CardData }
  | { type: 'CAROUSEL'; content?: string; buttons?: Button[]; data: { cardWidth?: CardWidth; cards: CarouselCard[] } }
  | { type: 'CONTACT'; content?: string; buttons?: Button[]; data: ContactData }
  | { type: 'LOCATION'; content?: string; buttons?: Button[]; data: { latitude: number; longitude: number; label?: string } }

type CardData = {
  title?: string
  imageUrl?: string
  orientation?: 'VERTICAL' | 'HORIZONTAL'
  height?: MediaHeight
  imageAlignment?: 'LEFT' | 'RIGHT'
}
export type CarouselCard = { title?: string; content?: string; imageUrl?: string; height?: MediaHeight; buttons?: Button[] }
type ContactData = { name: string; phoneNumbers: string[]; email?: string; organization?: string; url?: string }

export type MediaHeight = 'SHORT' | 'MEDIUM' | 'TALL'
export type CardWidth = 'SMALL' | 'MEDIUM'

export type Button = { id: string; text: string } & (
  | { type: 'url'; url: string }
  | { type: 'quick_reply'; payload: string }
  | { type: 'call'; phoneNumber: string }
  | { type: 'calendar'; title: string; startTime: string; endTime: string; description?: string }
  | { type: 'location'; latitude?: number; longitude?: number; label?: string }
  | { type: 'trigger_template'; templateId: number }
)
