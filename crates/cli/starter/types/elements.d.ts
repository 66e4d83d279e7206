// The elements of HTML, SVG and MathML with their attributes. A test of the crate
// `vocabulary` writes this file from the tables of that crate.

import type { Address, Child, Code, Flag, Numeric, OneOf, Text, TextChild, TextOrBare, Trusted } from "./markup.d.ts";

interface Common {
  "aria-activedescendant"?: Text;
  "aria-atomic"?: OneOf<"false" | "true">;
  "aria-autocomplete"?: OneOf<"both" | "inline" | "list" | "none">;
  "aria-braillelabel"?: Text;
  "aria-brailleroledescription"?: Text;
  "aria-busy"?: OneOf<"false" | "true">;
  "aria-checked"?: OneOf<"false" | "mixed" | "true" | "undefined">;
  "aria-colcount"?: Numeric;
  "aria-colindex"?: Numeric;
  "aria-colspan"?: Numeric;
  "aria-controls"?: Text;
  "aria-current"?: OneOf<"date" | "false" | "location" | "page" | "step" | "time" | "true">;
  "aria-describedby"?: Text;
  "aria-description"?: Text;
  "aria-details"?: Text;
  "aria-disabled"?: OneOf<"false" | "true">;
  "aria-dropeffect"?: Text;
  "aria-errormessage"?: Text;
  "aria-expanded"?: OneOf<"false" | "true" | "undefined">;
  "aria-flowto"?: Text;
  "aria-grabbed"?: OneOf<"false" | "true" | "undefined">;
  "aria-haspopup"?: OneOf<"dialog" | "false" | "grid" | "listbox" | "menu" | "tree" | "true">;
  "aria-hidden"?: OneOf<"false" | "true" | "undefined">;
  "aria-invalid"?: OneOf<"false" | "grammar" | "spelling" | "true">;
  "aria-keyshortcuts"?: Text;
  "aria-label"?: Text;
  "aria-labelledby"?: Text;
  "aria-level"?: Numeric;
  "aria-live"?: OneOf<"assertive" | "off" | "polite">;
  "aria-modal"?: OneOf<"false" | "true">;
  "aria-multiline"?: OneOf<"false" | "true">;
  "aria-multiselectable"?: OneOf<"false" | "true">;
  "aria-orientation"?: OneOf<"horizontal" | "undefined" | "vertical">;
  "aria-owns"?: Text;
  "aria-placeholder"?: Text;
  "aria-posinset"?: Numeric;
  "aria-pressed"?: OneOf<"false" | "mixed" | "true" | "undefined">;
  "aria-readonly"?: OneOf<"false" | "true">;
  "aria-relevant"?: Text;
  "aria-required"?: OneOf<"false" | "true">;
  "aria-roledescription"?: Text;
  "aria-rowcount"?: Numeric;
  "aria-rowindex"?: Numeric;
  "aria-rowspan"?: Numeric;
  "aria-selected"?: OneOf<"false" | "true" | "undefined">;
  "aria-setsize"?: Numeric;
  "aria-sort"?: OneOf<"ascending" | "descending" | "none" | "other">;
  "aria-valuemax"?: Numeric;
  "aria-valuemin"?: Numeric;
  "aria-valuenow"?: Numeric;
  "aria-valuetext"?: Text;
}

interface Global extends Common {
  accesskey?: Text;
  autocapitalize?: OneOf<"characters" | "none" | "off" | "on" | "sentences" | "words">;
  autocorrect?: OneOf<"off" | "on"> | true;
  autofocus?: Flag;
  class?: Text;
  contenteditable?: OneOf<"false" | "plaintext-only" | "true"> | true;
  dir?: OneOf<"auto" | "ltr" | "rtl">;
  draggable?: OneOf<"false" | "true">;
  enterkeyhint?: OneOf<"done" | "enter" | "go" | "next" | "previous" | "search" | "send">;
  exportparts?: Text;
  headingoffset?: OneOf<"0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8">;
  headingreset?: Flag;
  hidden?: OneOf<"hidden" | "until-found"> | true;
  id?: Text;
  inert?: Flag;
  inputmode?: OneOf<"decimal" | "email" | "none" | "numeric" | "search" | "tel" | "text" | "url">;
  is?: Text;
  itemid?: Text;
  itemprop?: Text;
  itemref?: Text;
  itemscope?: Flag;
  itemtype?: Text;
  lang?: Text;
  nonce?: Text;
  part?: Text;
  popover?: OneOf<"auto" | "hint" | "manual"> | true;
  role?: Text;
  slot?: Text;
  spellcheck?: OneOf<"false" | "true"> | true;
  style?: Code;
  tabindex?: Numeric;
  title?: Text;
  translate?: OneOf<"no" | "yes"> | true;
  virtualkeyboardpolicy?: OneOf<"auto" | "manual">;
  writingsuggestions?: OneOf<"false" | "true"> | true;
  "xml:lang"?: Text;
  xmlns?: Text;
}

interface Svg extends Common {
  accumulate?: Text;
  additive?: Text;
  "alignment-baseline"?: Text;
  amplitude?: Text;
  attributeName?: Text;
  autofocus?: Text;
  azimuth?: Text;
  baseFrequency?: Text;
  "baseline-shift"?: Text;
  begin?: Text;
  bias?: Text;
  by?: Text;
  calcMode?: Text;
  class?: Text;
  clip?: Text;
  "clip-path"?: Text;
  "clip-rule"?: Text;
  clipPathUnits?: Text;
  color?: Text;
  "color-interpolation"?: Text;
  "color-interpolation-filters"?: Text;
  crossorigin?: Text;
  cursor?: Text;
  cx?: Text;
  cy?: Text;
  d?: Text;
  diffuseConstant?: Text;
  direction?: Text;
  display?: Text;
  divisor?: Text;
  "dominant-baseline"?: Text;
  download?: Text;
  dur?: Text;
  dx?: Text;
  dy?: Text;
  edgeMode?: Text;
  elevation?: Text;
  end?: Text;
  exponent?: Text;
  fetchpriority?: Text;
  fill?: Text;
  "fill-opacity"?: Text;
  "fill-rule"?: Text;
  filter?: Text;
  filterUnits?: Text;
  "flood-color"?: Text;
  "flood-opacity"?: Text;
  "font-family"?: Text;
  "font-size"?: Text;
  "font-size-adjust"?: Text;
  "font-stretch"?: Text;
  "font-style"?: Text;
  "font-variant"?: Text;
  "font-weight"?: Text;
  fr?: Text;
  from?: Text;
  fx?: Text;
  fy?: Text;
  "glyph-orientation-horizontal"?: Text;
  "glyph-orientation-vertical"?: Text;
  gradientTransform?: Text;
  gradientUnits?: Text;
  height?: Text;
  href?: Address;
  hreflang?: Text;
  id?: Text;
  "image-rendering"?: Text;
  in?: Text;
  in2?: Text;
  intercept?: Text;
  k1?: Text;
  k2?: Text;
  k3?: Text;
  k4?: Text;
  kernelMatrix?: Text;
  kernelUnitLength?: Text;
  keyPoints?: Text;
  keySplines?: Text;
  keyTimes?: Text;
  lang?: Text;
  lengthAdjust?: Text;
  "letter-spacing"?: Text;
  "lighting-color"?: Text;
  limitingConeAngle?: Text;
  "marker-end"?: Text;
  "marker-mid"?: Text;
  "marker-start"?: Text;
  markerHeight?: Text;
  markerUnits?: Text;
  markerWidth?: Text;
  mask?: Text;
  "mask-type"?: Text;
  maskContentUnits?: Text;
  maskUnits?: Text;
  max?: Text;
  media?: Text;
  method?: Text;
  min?: Text;
  mode?: Text;
  nonce?: Text;
  numOctaves?: Text;
  offset?: Text;
  opacity?: Text;
  operator?: Text;
  order?: Text;
  orient?: Text;
  origin?: Text;
  overflow?: Text;
  "paint-order"?: Text;
  path?: Text;
  pathLength?: Text;
  patternContentUnits?: Text;
  patternTransform?: Text;
  patternUnits?: Text;
  ping?: Address;
  "pointer-events"?: Text;
  points?: Text;
  pointsAtX?: Text;
  pointsAtY?: Text;
  pointsAtZ?: Text;
  preserveAlpha?: Text;
  preserveAspectRatio?: Text;
  primitiveUnits?: Text;
  r?: Text;
  radius?: Text;
  refX?: Text;
  refY?: Text;
  referrerpolicy?: Text;
  rel?: Text;
  repeatCount?: Text;
  repeatDur?: Text;
  requiredExtensions?: Text;
  restart?: Text;
  result?: Text;
  role?: Text;
  rotate?: Text;
  rx?: Text;
  ry?: Text;
  scale?: Text;
  seed?: Text;
  "shape-rendering"?: Text;
  side?: Text;
  slope?: Text;
  spacing?: Text;
  specularConstant?: Text;
  specularExponent?: Text;
  spreadMethod?: Text;
  startOffset?: Text;
  stdDeviation?: Text;
  stitchTiles?: Text;
  "stop-color"?: Text;
  "stop-opacity"?: Text;
  stroke?: Text;
  "stroke-dasharray"?: Text;
  "stroke-dashoffset"?: Text;
  "stroke-linecap"?: Text;
  "stroke-linejoin"?: Text;
  "stroke-miterlimit"?: Text;
  "stroke-opacity"?: Text;
  "stroke-width"?: Text;
  style?: Code;
  surfaceScale?: Text;
  systemLanguage?: Text;
  tabindex?: Text;
  tableValues?: Text;
  target?: Text;
  targetX?: Text;
  targetY?: Text;
  "text-anchor"?: Text;
  "text-decoration"?: Text;
  "text-overflow"?: Text;
  "text-rendering"?: Text;
  textLength?: Text;
  title?: Text;
  to?: Text;
  transform?: Text;
  "transform-origin"?: Text;
  type?: Text;
  "unicode-bidi"?: Text;
  values?: Text;
  "vector-effect"?: Text;
  viewBox?: Text;
  visibility?: Text;
  "white-space"?: Text;
  width?: Text;
  "word-spacing"?: Text;
  "writing-mode"?: Text;
  x?: Text;
  x1?: Text;
  x2?: Text;
  xChannelSelector?: Text;
  "xlink:href"?: Address;
  "xlink:title"?: Text;
  "xml:lang"?: Text;
  "xml:space"?: Text;
  xmlns?: Text;
  "xmlns:xlink"?: Text;
  y?: Text;
  y1?: Text;
  y2?: Text;
  yChannelSelector?: Text;
  z?: Text;
  children?: Child;
}

interface MathMl extends Common {
  accent?: Text;
  accentunder?: Text;
  alttext?: Text;
  arg?: Text;
  autofocus?: Text;
  class?: Text;
  columnspan?: Text;
  depth?: Text;
  dir?: Text;
  display?: Text;
  displaystyle?: Text;
  encoding?: Text;
  fence?: Text;
  form?: Text;
  height?: Text;
  href?: Address;
  id?: Text;
  intent?: Text;
  lang?: Text;
  largeop?: Text;
  linethickness?: Text;
  lspace?: Text;
  mathbackground?: Text;
  mathcolor?: Text;
  mathsize?: Text;
  mathvariant?: Text;
  maxsize?: Text;
  minsize?: Text;
  movablelimits?: Text;
  nonce?: Text;
  role?: Text;
  rowspan?: Text;
  rspace?: Text;
  scriptlevel?: Text;
  separator?: Text;
  stretchy?: Text;
  style?: Code;
  symmetric?: Text;
  tabindex?: Text;
  voffset?: Text;
  width?: Text;
  "xml:lang"?: Text;
  xmlns?: Text;
  children?: Child;
}

interface Plain extends Global {
  children?: Child;
}

interface AElement extends Global {
  download?: TextOrBare;
  href?: Address;
  hreflang?: Text;
  ping?: Text;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  rel?: Text;
  target?: Text;
  type?: Text;
  children?: Child;
}

interface AreaElement extends Global {
  alt?: Text;
  coords?: Text;
  download?: Text;
  href?: Address;
  ping?: Text;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  rel?: Text;
  shape?: OneOf<"circle" | "default" | "poly" | "rect">;
  target?: Text;
}

interface AudioElement extends Global {
  autoplay?: Flag;
  controls?: Flag;
  crossorigin?: OneOf<"anonymous" | "use-credentials"> | true;
  disableremoteplayback?: Flag;
  loading?: OneOf<"eager" | "lazy">;
  loop?: Flag;
  muted?: Flag;
  preload?: OneOf<"auto" | "metadata" | "none"> | true;
  src?: Address;
  children?: Child;
}

interface BaseElement extends Global {
  href?: Address;
  target?: Text;
}

interface BdoElement extends Omit<Global, "dir"> {
  dir?: OneOf<"ltr" | "rtl">;
  children?: Child;
}

interface BlockquoteElement extends Global {
  cite?: Address;
  children?: Child;
}

interface BodyElement extends Global {
  onafterprint?: Code;
  onbeforeprint?: Code;
  onbeforeunload?: Code;
  onhashchange?: Code;
  onlanguagechange?: Code;
  onmessage?: Code;
  onmessageerror?: Code;
  onoffline?: Code;
  ononline?: Code;
  onpagehide?: Code;
  onpagereveal?: Code;
  onpageshow?: Code;
  onpageswap?: Code;
  onpopstate?: Code;
  onrejectionhandled?: Code;
  onstorage?: Code;
  onunhandledrejection?: Code;
  onunload?: Code;
  children?: Child;
}

interface BrElement extends Global {
}

interface ButtonElement extends Global {
  command?: Text;
  commandfor?: Text;
  disabled?: Flag;
  form?: Text;
  formaction?: Address;
  formenctype?: OneOf<"application/x-www-form-urlencoded" | "multipart/form-data" | "text/plain">;
  formmethod?: OneOf<"dialog" | "get" | "post">;
  formnovalidate?: Flag;
  formtarget?: Text;
  name?: Text;
  popovertarget?: Text;
  popovertargetaction?: OneOf<"hide" | "show" | "toggle">;
  type?: OneOf<"button" | "reset" | "submit">;
  value?: Text;
  children?: Child;
}

interface CanvasElement extends Global {
  height?: Numeric;
  width?: Numeric;
  children?: Child;
}

interface ColElement extends Global {
  span?: Numeric;
}

interface ColgroupElement extends Global {
  span?: Numeric;
  children?: Child;
}

interface DataElement extends Global {
  value?: Text;
  children?: Child;
}

interface DelElement extends Global {
  cite?: Address;
  datetime?: Text;
  children?: Child;
}

interface DetailsElement extends Global {
  name?: Text;
  open?: Flag;
  children?: Child;
}

interface DialogElement extends Global {
  closedby?: OneOf<"any" | "closerequest" | "none"> | true;
  open?: Flag;
  children?: Child;
}

interface EmbedElement extends Global {
  height?: Numeric;
  src?: Address;
  type?: Text;
  width?: Numeric;
}

interface FieldsetElement extends Global {
  disabled?: Flag;
  form?: Text;
  name?: Text;
  children?: Child;
}

interface FormElement extends Global {
  "accept-charset"?: OneOf<"utf-8">;
  action?: Address;
  autocomplete?: OneOf<"off" | "on">;
  enctype?: OneOf<"application/x-www-form-urlencoded" | "multipart/form-data" | "text/plain">;
  method?: OneOf<"dialog" | "get" | "post">;
  name?: Text;
  novalidate?: Flag;
  rel?: Text;
  target?: Text;
  children?: Child;
}

interface HrElement extends Global {
}

interface IframeElement extends Global {
  allow?: Text;
  allowfullscreen?: Flag;
  height?: Numeric;
  loading?: OneOf<"eager" | "lazy">;
  name?: Text;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  sandbox?: Text;
  src?: Address;
  srcdoc?: Code;
  width?: Numeric;
  children?: Child;
}

interface ImgElement extends Global {
  alt?: Text;
  controls?: Flag;
  crossorigin?: OneOf<"anonymous" | "use-credentials"> | true;
  decoding?: OneOf<"async" | "auto" | "sync">;
  fetchpriority?: OneOf<"auto" | "high" | "low"> | true;
  height?: Numeric;
  ismap?: Flag;
  loading?: OneOf<"eager" | "lazy"> | true;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  sizes?: Text;
  src?: Address;
  srcset?: Text;
  usemap?: Text;
  width?: Numeric;
}

interface InputElement extends Global {
  accept?: Text;
  alpha?: Flag;
  alt?: Text;
  autocomplete?: Text;
  capture?: OneOf<"environment" | "user"> | true;
  checked?: Flag;
  colorspace?: OneOf<"display-p3" | "limited-srgb">;
  dirname?: Text;
  disabled?: Flag;
  form?: Text;
  formaction?: Address;
  formenctype?: OneOf<"application/x-www-form-urlencoded" | "multipart/form-data" | "text/plain">;
  formmethod?: OneOf<"dialog" | "get" | "post">;
  formnovalidate?: Flag;
  formtarget?: Text;
  height?: Numeric;
  list?: Text;
  max?: Text;
  maxlength?: Numeric;
  min?: Text;
  minlength?: Numeric;
  multiple?: Flag;
  name?: Text;
  pattern?: Text;
  placeholder?: Text;
  popovertarget?: Text;
  popovertargetaction?: OneOf<"hide" | "show" | "toggle">;
  readonly?: Flag;
  required?: Flag;
  size?: Numeric;
  src?: Address;
  step?: Text;
  type?: OneOf<"button" | "checkbox" | "color" | "date" | "datetime-local" | "email" | "file" | "hidden" | "image" | "month" | "number" | "password" | "radio" | "range" | "reset" | "search" | "submit" | "tel" | "text" | "time" | "url" | "week">;
  value?: Text;
  width?: Numeric;
}

interface InsElement extends Global {
  cite?: Address;
  datetime?: Text;
  children?: Child;
}

interface LabelElement extends Global {
  for?: Text;
  children?: Child;
}

interface LiElement extends Global {
  value?: Numeric;
  children?: Child;
}

interface LinkElement extends Global {
  as?: OneOf<"audio" | "audioworklet" | "document" | "embed" | "fetch" | "font" | "frame" | "iframe" | "image" | "manifest" | "object" | "paintworklet" | "report" | "script" | "serviceworker" | "sharedworker" | "style" | "track" | "video" | "webidentity" | "worker" | "xslt">;
  blocking?: Text;
  color?: Text;
  crossorigin?: OneOf<"anonymous" | "use-credentials"> | true;
  disabled?: Flag;
  fetchpriority?: OneOf<"auto" | "high" | "low">;
  href?: Address;
  hreflang?: Text;
  imagesizes?: Text;
  imagesrcset?: Text;
  integrity?: Text;
  media?: Text;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  rel?: Text;
  sizes?: Text;
  type?: Text;
}

interface MapElement extends Global {
  name?: Text;
  children?: Child;
}

interface MetaElement extends Global {
  charset?: OneOf<"utf-8">;
  content?: Text;
  "http-equiv"?: OneOf<"content-security-policy" | "content-type" | "default-style" | "refresh" | "x-ua-compatible">;
  media?: Text;
  name?: Text;
  property?: Text;
}

interface MeterElement extends Global {
  high?: Numeric;
  low?: Numeric;
  max?: Numeric;
  min?: Numeric;
  optimum?: Numeric;
  value?: Numeric;
  children?: Child;
}

interface ObjectElement extends Global {
  data?: Address;
  form?: Text;
  height?: Numeric;
  name?: Text;
  type?: Text;
  width?: Numeric;
  children?: Child;
}

interface OlElement extends Global {
  reversed?: Flag;
  start?: Numeric;
  type?: OneOf<"1" | "A" | "I" | "a" | "i">;
  children?: Child;
}

interface OptgroupElement extends Global {
  disabled?: Flag;
  label?: Text;
  children?: Child;
}

interface OptionElement extends Global {
  disabled?: Flag;
  label?: Text;
  selected?: Flag;
  value?: Text;
  children?: Child;
}

interface OutputElement extends Global {
  for?: Text;
  form?: Text;
  name?: Text;
  children?: Child;
}

interface ProgressElement extends Global {
  max?: Numeric;
  value?: Numeric;
  children?: Child;
}

interface QElement extends Global {
  cite?: Address;
  children?: Child;
}

interface RpElement extends Global {
  children?: TextChild;
}

interface ScriptElement extends Global {
  async?: Flag;
  blocking?: Text;
  crossorigin?: OneOf<"anonymous" | "use-credentials"> | true;
  defer?: Flag;
  fetchpriority?: OneOf<"auto" | "high" | "low">;
  integrity?: Text;
  nomodule?: Flag;
  referrerpolicy?: OneOf<"no-referrer" | "no-referrer-when-downgrade" | "origin" | "origin-when-cross-origin" | "same-origin" | "strict-origin" | "strict-origin-when-cross-origin" | "unsafe-url"> | true;
  src?: Address;
  type?: Text;
  children?: Trusted | string;
}

interface SelectElement extends Global {
  autocomplete?: Text;
  disabled?: Flag;
  form?: Text;
  multiple?: Flag;
  name?: Text;
  required?: Flag;
  size?: Numeric;
  children?: Child;
}

interface SlotElement extends Global {
  name?: Text;
  children?: Child;
}

interface SourceElement extends Global {
  height?: Numeric;
  media?: Text;
  sizes?: Text;
  src?: Address;
  srcset?: Text;
  type?: Text;
  width?: Numeric;
}

interface StyleElement extends Global {
  blocking?: Text;
  media?: Text;
  children?: Trusted | string;
}

interface TdElement extends Global {
  colspan?: Numeric;
  headers?: Text;
  rowspan?: Numeric;
  children?: Child;
}

interface TemplateElement extends Global {
  for?: Text;
  shadowrootclonable?: Flag;
  shadowrootcustomelementregistry?: Flag;
  shadowrootdelegatesfocus?: Flag;
  shadowrootmode?: OneOf<"closed" | "open">;
  shadowrootserializable?: Flag;
  shadowrootslotassignment?: OneOf<"manual" | "named">;
  children?: Child;
}

interface TextareaElement extends Global {
  autocomplete?: Text;
  cols?: Numeric;
  dirname?: Text;
  disabled?: Flag;
  form?: Text;
  maxlength?: Numeric;
  minlength?: Numeric;
  name?: Text;
  placeholder?: Text;
  readonly?: Flag;
  required?: Flag;
  rows?: Numeric;
  wrap?: OneOf<"hard" | "soft">;
  children?: TextChild;
}

interface ThElement extends Global {
  abbr?: Text;
  colspan?: Numeric;
  headers?: Text;
  rowspan?: Numeric;
  scope?: OneOf<"col" | "colgroup" | "row" | "rowgroup">;
  children?: Child;
}

interface TimeElement extends Global {
  datetime?: Text;
  children?: Child;
}

interface TitleElement extends Global {
  children?: TextChild;
}

interface TrackElement extends Global {
  default?: Flag;
  kind?: OneOf<"captions" | "chapters" | "descriptions" | "metadata" | "subtitles"> | true;
  label?: Text;
  src?: Address;
  srclang?: Text;
}

interface VideoElement extends Global {
  autoplay?: Flag;
  controls?: Flag;
  crossorigin?: OneOf<"anonymous" | "use-credentials"> | true;
  disablepictureinpicture?: Flag;
  disableremoteplayback?: Flag;
  height?: Numeric;
  loading?: OneOf<"eager" | "lazy">;
  loop?: Flag;
  muted?: Flag;
  playsinline?: Flag;
  poster?: Address;
  preload?: OneOf<"auto" | "metadata" | "none"> | true;
  src?: Address;
  width?: Numeric;
  children?: Child;
}

interface WbrElement extends Global {
}

interface SvgA extends AElement, Omit<Svg, keyof AElement> {
}

interface SvgScript extends ScriptElement, Omit<Svg, keyof ScriptElement> {
}

interface SvgStyle extends StyleElement, Omit<Svg, keyof StyleElement> {
}

interface SvgSvg extends Plain, Omit<Svg, keyof Plain> {
}

interface SvgTitle extends TitleElement, Omit<Svg, keyof TitleElement> {
}

interface MathMlA extends SvgA, Omit<MathMl, keyof SvgA> {
}

interface MathMlMath extends Plain, Omit<MathMl, keyof Plain> {
}

export interface Elements {
  a: MathMlA;
  abbr: Plain;
  address: Plain;
  animate: Svg;
  animateMotion: Svg;
  animateTransform: Svg;
  annotation: MathMl;
  area: AreaElement;
  article: Plain;
  aside: Plain;
  audio: AudioElement;
  b: Plain;
  base: BaseElement;
  bdi: Plain;
  bdo: BdoElement;
  blockquote: BlockquoteElement;
  body: BodyElement;
  br: BrElement;
  button: ButtonElement;
  canvas: CanvasElement;
  caption: Plain;
  circle: Svg;
  cite: Plain;
  clipPath: Svg;
  code: Plain;
  col: ColElement;
  colgroup: ColgroupElement;
  data: DataElement;
  datalist: Plain;
  dd: Plain;
  defs: Svg;
  del: DelElement;
  desc: Svg;
  details: DetailsElement;
  dfn: Plain;
  dialog: DialogElement;
  div: Plain;
  dl: Plain;
  dt: Plain;
  ellipse: Svg;
  em: Plain;
  embed: EmbedElement;
  feBlend: Svg;
  feColorMatrix: Svg;
  feComponentTransfer: Svg;
  feComposite: Svg;
  feConvolveMatrix: Svg;
  feDiffuseLighting: Svg;
  feDisplacementMap: Svg;
  feDistantLight: Svg;
  feDropShadow: Svg;
  feFlood: Svg;
  feFuncA: Svg;
  feFuncB: Svg;
  feFuncG: Svg;
  feFuncR: Svg;
  feGaussianBlur: Svg;
  feImage: Svg;
  feMerge: Svg;
  feMergeNode: Svg;
  feMorphology: Svg;
  feOffset: Svg;
  fePointLight: Svg;
  feSpecularLighting: Svg;
  feSpotLight: Svg;
  feTile: Svg;
  feTurbulence: Svg;
  fieldset: FieldsetElement;
  figcaption: Plain;
  figure: Plain;
  filter: Svg;
  footer: Plain;
  foreignObject: Svg;
  form: FormElement;
  g: Svg;
  h1: Plain;
  h2: Plain;
  h3: Plain;
  h4: Plain;
  h5: Plain;
  h6: Plain;
  head: Plain;
  header: Plain;
  hgroup: Plain;
  hr: HrElement;
  html: Plain;
  i: Plain;
  iframe: IframeElement;
  image: Svg;
  img: ImgElement;
  input: InputElement;
  ins: InsElement;
  kbd: Plain;
  label: LabelElement;
  legend: Plain;
  li: LiElement;
  line: Svg;
  linearGradient: Svg;
  link: LinkElement;
  maction: MathMl;
  main: Plain;
  map: MapElement;
  mark: Plain;
  marker: Svg;
  mask: Svg;
  math: MathMlMath;
  menu: Plain;
  merror: MathMl;
  meta: MetaElement;
  metadata: Svg;
  meter: MeterElement;
  mfrac: MathMl;
  mi: MathMl;
  mmultiscripts: MathMl;
  mn: MathMl;
  mo: MathMl;
  mover: MathMl;
  mpadded: MathMl;
  mpath: Svg;
  mphantom: MathMl;
  mprescripts: MathMl;
  mroot: MathMl;
  mrow: MathMl;
  ms: MathMl;
  mspace: MathMl;
  msqrt: MathMl;
  mstyle: MathMl;
  msub: MathMl;
  msubsup: MathMl;
  msup: MathMl;
  mtable: MathMl;
  mtd: MathMl;
  mtext: MathMl;
  mtr: MathMl;
  munder: MathMl;
  munderover: MathMl;
  nav: Plain;
  noscript: Plain;
  object: ObjectElement;
  ol: OlElement;
  optgroup: OptgroupElement;
  option: OptionElement;
  output: OutputElement;
  p: Plain;
  path: Svg;
  pattern: Svg;
  picture: Plain;
  polygon: Svg;
  polyline: Svg;
  pre: Plain;
  progress: ProgressElement;
  q: QElement;
  radialGradient: Svg;
  rect: Svg;
  rp: RpElement;
  rt: Plain;
  ruby: Plain;
  s: Plain;
  samp: Plain;
  script: SvgScript;
  search: Plain;
  section: Plain;
  select: SelectElement;
  selectedcontent: Plain;
  semantics: MathMl;
  set: Svg;
  slot: SlotElement;
  small: Plain;
  source: SourceElement;
  span: Plain;
  stop: Svg;
  strong: Plain;
  style: SvgStyle;
  sub: Plain;
  summary: Plain;
  sup: Plain;
  svg: SvgSvg;
  switch: Svg;
  symbol: Svg;
  table: Plain;
  tbody: Plain;
  td: TdElement;
  template: TemplateElement;
  text: Svg;
  textPath: Svg;
  textarea: TextareaElement;
  tfoot: Plain;
  th: ThElement;
  thead: Plain;
  time: TimeElement;
  title: SvgTitle;
  tr: Plain;
  track: TrackElement;
  tspan: Svg;
  u: Plain;
  ul: Plain;
  use: Svg;
  var: Plain;
  video: VideoElement;
  view: Svg;
  wbr: WbrElement;
}
