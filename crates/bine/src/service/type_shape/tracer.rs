//! A deserializer that records what a type asks for, and gives it values until all of its parts have
//! been seen.
//!
//! One run sees one variant of each enum, and ends at the first value that a type rejects, such as a
//! text that is no moment. So a type is deserialized again and again, each time with one more variant
//! seen or one more value tried. The number of runs is bounded; beyond it, the last shape counts.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess};
use serde::de::{VariantAccess, Visitor};

use super::{ChoiceVariant, RecordField, TypeShape};

/// Runs for one type.
const MAX_RUNS: usize = 500;
/// Values within each other.
const MAX_DEPTH: usize = 12;
/// Parts of a fixed sequence that are a tuple; a longer one is a list.
const MAX_TUPLE: usize = 8;

/// Texts that types with a syntax accept: an id, a moment, a date, a time, an address, base64 and more.
const TEXTS: [&str; 13] = [
    "1",
    "a",
    "00000000-0000-7000-8000-000000000001",
    "2026-11-21T09:30:00Z",
    "2026-11-21",
    "09:30:00",
    "127.0.0.1",
    "127.0.0.1:80",
    "https://example.org/",
    "a@example.org",
    "AAAA",
    "true",
    "",
];
/// Numbers that types with a range accept.
const NUMBERS: [u8; 4] = [1, 0, 10, 100];

/// The shape of a type.
pub(super) fn trace<T: Deserialize<'static>>() -> TypeShape {
    let search = TypeSearch::default();
    let mut last = TypeShape::Unknown;
    while search.runs.get() < MAX_RUNS {
        search.begin();
        let shape = RefCell::new(TypeShape::Unknown);
        let result = T::deserialize(Tracer::new(&search, &shape));
        last = shape.into_inner();
        if result.is_err() && !search.needs_run.get() {
            // A type may read a value first, and reject it then.
            search.reject_last();
        }
        if !search.needs_run.get() {
            if result.is_ok() {
                search.find_optional_fields::<T>();
                search.begin();
                let shape = RefCell::new(TypeShape::Unknown);
                if T::deserialize(Tracer::new(&search, &shape)).is_ok() {
                    return shape.into_inner();
                }
            }
            return last;
        }
    }
    last
}

/// The place of a value in its type.
type Place = u64;

fn step(place: Place, name: impl Hash) -> Place {
    let mut hasher = DefaultHasher::new();
    (place, name).hash(&mut hasher);
    hasher.finish()
}

/// An enum or a struct: the address of its list of names, and their number.
type TypeKey = (usize, usize);

fn key_of(names: &'static [&'static str]) -> TypeKey {
    (names.as_ptr() as usize, names.len())
}

/// The facts known about a type so far.
#[derive(Default)]
struct TypeSearch {
    runs: Cell<usize>,
    /// Whether this run has learned something, so that a further run sees more.
    needs_run: Cell<bool>,
    /// How many values a type has rejected at a place.
    rejected: RefCell<HashMap<Place, usize>>,
    /// The variants of each enum that were seen.
    variants: RefCell<HashMap<TypeKey, Vec<ChoiceVariant>>>,
    /// The structs and enums that are being read.
    open: RefCell<Vec<TypeKey>>,
    /// The containers that stay empty, because their type contains itself.
    emptied: RefCell<HashSet<Place>>,
    /// The fields of all structs of this run.
    fields: RefCell<Vec<Place>>,
    /// The fields that may be absent.
    optional: RefCell<HashSet<Place>>,
    /// The fields that were omitted once.
    tried: RefCell<HashSet<Place>>,
    /// The field that is omitted in this run.
    left_out: Cell<Option<Place>>,
    /// The last value of this run: its place, and how many values there are to try.
    last: Cell<Option<(Place, usize)>>,
}

impl TypeSearch {
    fn begin(&self) {
        self.runs.set(self.runs.get() + 1);
        self.needs_run.set(false);
        self.last.set(None);
        self.open.borrow_mut().clear();
        self.fields.borrow_mut().clear();
    }

    /// Omits each field once.
    fn find_optional_fields<T: Deserialize<'static>>(&self) {
        let fields = self.fields.borrow().clone();
        for field in fields {
            if self.runs.get() >= MAX_RUNS {
                break;
            }
            self.begin();
            self.left_out.set(Some(field));
            self.tried.borrow_mut().insert(field);
            let shape = RefCell::new(TypeShape::Unknown);
            if T::deserialize(Tracer::new(self, &shape)).is_ok() {
                self.optional.borrow_mut().insert(field);
            }
        }
        self.left_out.set(None);
    }

    fn reject_last(&self) {
        if let Some((place, count)) = self.last.get() {
            self.reject(place, count);
        }
    }

    /// The number of values that were rejected at a place.
    fn rejected_at(&self, place: Place) -> usize {
        self.rejected.borrow().get(&place).copied().unwrap_or_default()
    }

    /// Notes that a type has rejected the last value at a place, of which there are `count`.
    fn reject(&self, place: Place, count: usize) {
        let rejected = self.rejected_at(place) + 1;
        self.rejected.borrow_mut().insert(place, rejected);
        if rejected < count {
            self.needs_run.set(true);
        }
    }
}

/// Reads one value.
#[derive(Clone, Copy)]
struct Tracer<'t> {
    search: &'t TypeSearch,
    /// Where the shape is recorded.
    shape: &'t RefCell<TypeShape>,
    place: Place,
    /// The nearest container around it that may be empty.
    container: Option<Place>,
    depth: usize,
}

impl<'t> Tracer<'t> {
    fn new(search: &'t TypeSearch, shape: &'t RefCell<TypeShape>) -> Self {
        Self { search, shape, place: 0, container: None, depth: 0 }
    }

    fn record(self, shape: TypeShape) {
        self.shape.replace(shape);
    }

    /// A tracer for a part of the value.
    fn part(self, name: impl Hash, shape: &'t RefCell<TypeShape>) -> Self {
        Self { shape, place: step(self.place, name), depth: self.depth + 1, ..self }
    }

    /// The same, for a part that may be missing.
    fn item(self, name: impl Hash, shape: &'t RefCell<TypeShape>) -> Self {
        Self { container: Some(self.place), ..self.part(name, shape) }
    }

    /// Whether a container has no part in this run.
    fn is_empty(self) -> bool {
        self.depth >= MAX_DEPTH || self.search.emptied.borrow().contains(&self.place)
    }

    /// Gives a value, and another one in the next run if it is rejected.
    fn give<T>(
        self,
        shape: TypeShape,
        count: usize,
        visit: impl FnOnce(usize) -> Result<T, Unfit>,
    ) -> Result<T, Unfit> {
        self.record(shape);
        self.search.last.set(Some((self.place, count)));
        let chosen = self.search.rejected_at(self.place).min(count - 1);
        visit(chosen).inspect_err(|_| self.search.reject(self.place, count))
    }

    fn text<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.give(TypeShape::Text, TEXTS.len(), |chosen| visitor.visit_borrowed_str(TEXTS[chosen]))
    }

    /// Opens a struct or an enum for `read`. A type that contains itself ends in an empty container.
    fn within<T>(self, key: TypeKey, read: impl FnOnce() -> Result<T, Unfit>) -> Result<T, Unfit> {
        if self.depth >= MAX_DEPTH || self.search.open.borrow().contains(&key) {
            if let Some(container) = self.container
                && self.search.emptied.borrow_mut().insert(container)
            {
                self.search.needs_run.set(true);
            }
            return Err(Unfit);
        }
        self.search.open.borrow_mut().push(key);
        let result = read();
        self.search.open.borrow_mut().pop();
        result
    }
}

/// The type has rejected a value; the search knows the place.
#[derive(Debug)]
struct Unfit;

impl fmt::Display for Unfit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("the type rejects a value")
    }
}

impl std::error::Error for Unfit {}

impl Error for Unfit {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Gives numbers of the type that is asked for.
macro_rules! numbers {
    ($($deserialize:ident $visit:ident $number:ty: $shape:ident,)*) => {$(
        fn $deserialize<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
            self.give(TypeShape::$shape, NUMBERS.len(), |chosen| {
                visitor.$visit(<$number>::from(NUMBERS[chosen]))
            })
        }
    )*};
}

impl Deserializer<'static> for Tracer<'_> {
    type Error = Unfit;

    numbers! {
        deserialize_i16 visit_i16 i16: Number,
        deserialize_i32 visit_i32 i32: Number,
        deserialize_i64 visit_i64 i64: LargeInteger,
        deserialize_i128 visit_i128 i128: LargeInteger,
        deserialize_u8 visit_u8 u8: Number,
        deserialize_u16 visit_u16 u16: Number,
        deserialize_u32 visit_u32 u32: Number,
        deserialize_u64 visit_u64 u64: LargeInteger,
        deserialize_u128 visit_u128 u128: LargeInteger,
        deserialize_f32 visit_f32 f32: Number,
        deserialize_f64 visit_f64 f64: Number,
    }

    fn deserialize_i8<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.give(TypeShape::Number, NUMBERS.len(), |chosen| {
            visitor.visit_i8(NUMBERS[chosen].cast_signed())
        })
    }

    fn deserialize_bool<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.give(TypeShape::Boolean, 2, |chosen| visitor.visit_bool(chosen == 0))
    }

    fn deserialize_char<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.give(TypeShape::Text, 1, |_| visitor.visit_char('a'))
    }

    fn deserialize_str<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.text(visitor)
    }

    fn deserialize_string<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.text(visitor)
    }

    /// JSON has bytes as a text.
    fn deserialize_bytes<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.give(TypeShape::Text, 1, |_| visitor.visit_borrowed_bytes(b"a"))
    }

    fn deserialize_byte_buf<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_unit<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.record(TypeShape::Nothing);
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'static>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'static>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        let inner = RefCell::default();
        let result = if self.is_empty() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self.item("some", &inner))
        };
        self.record(TypeShape::Optional(Box::new(inner.into_inner())));
        result
    }

    fn deserialize_seq<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        let item = RefCell::default();
        let left = usize::from(!self.is_empty());
        let result = visitor.visit_seq(ListAccess { tracer: self, item: &item, left });
        self.record(TypeShape::List(Box::new(item.into_inner())));
        result
    }

    fn deserialize_tuple<V: Visitor<'static>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        if length > MAX_TUPLE {
            let item = RefCell::default();
            let result = visitor.visit_seq(ListAccess { tracer: self, item: &item, left: length });
            self.record(TypeShape::List(Box::new(item.into_inner())));
            return result;
        }
        let items = RefCell::default();
        let result = visitor.visit_seq(TupleAccess { tracer: self, items: &items, length });
        let mut items = items.into_inner();
        items.resize(length, TypeShape::Unknown);
        self.record(TypeShape::Tuple(items));
        result
    }

    fn deserialize_tuple_struct<V: Visitor<'static>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        let (key, value) = (RefCell::default(), RefCell::default());
        let left = usize::from(!self.is_empty());
        let result =
            visitor.visit_map(EntryAccess { tracer: self, key: &key, value: &value, left });
        self.record(TypeShape::Map(Box::new(value.into_inner())));
        result
    }

    fn deserialize_struct<V: Visitor<'static>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.within(key_of(names), || {
            let fields = RefCell::new(names.iter().map(|name| self.unseen_field(name)).collect());
            let result =
                visitor.visit_map(FieldAccess { tracer: self, names, fields: &fields, next: 0 });
            self.record(TypeShape::Record(fields.into_inner()));
            result
        })
    }

    fn deserialize_enum<V: Visitor<'static>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        let key = key_of(words);
        let seen = self.search.variants.borrow().get(&key).map_or(0, Vec::len);
        // All were seen: any variant that the type accepts is good. The first ones are the simplest.
        let known = self.search.rejected_at(self.place).min(words.len().saturating_sub(1));
        let chosen = if seen < words.len() { seen } else { known };
        let Some(word) = words.get(chosen).copied() else { return Err(Unfit) };
        self.within(key, || {
            let content = RefCell::new(None);
            let result = visitor.visit_enum(ChoiceAccess { tracer: self, word, content: &content });
            let variant = ChoiceVariant { word, content: content.into_inner() };
            let mut variants = self.search.variants.borrow_mut();
            let seen = variants.entry(key).or_default();
            // The content of a variant may need further runs: the last one counts.
            match seen.get_mut(chosen) {
                Some(known) => *known = variant,
                None if !self.search.needs_run.get() || result.is_ok() => {
                    seen.push(variant);
                    self.search.needs_run.set(true);
                }
                None => {}
            }
            self.record(TypeShape::Choice(seen.clone()));
            if result.is_err() && seen.len() == words.len() {
                self.search.reject(self.place, words.len());
            }
            result
        })
    }

    fn deserialize_identifier<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.text(visitor)
    }

    /// The type accepts several kinds of values.
    fn deserialize_any<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.record(TypeShape::Unknown);
        visitor.visit_unit()
    }

    fn deserialize_ignored_any<V: Visitor<'static>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.deserialize_any(visitor)
    }
}

impl Tracer<'_> {
    /// A field that was not read yet.
    fn unseen_field(self, name: &'static str) -> RecordField {
        let place = step(self.place, name);
        let may_be_absent = self.search.optional.borrow().contains(&place);
        RecordField { name, may_be_absent, shape: TypeShape::Unknown }
    }
}

struct ListAccess<'t> {
    tracer: Tracer<'t>,
    item: &'t RefCell<TypeShape>,
    left: usize,
}

impl SeqAccess<'static> for ListAccess<'_> {
    type Error = Unfit;

    fn next_element_seed<S: DeserializeSeed<'static>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unfit> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.tracer.item("item", self.item)).map(Some)
    }
}

struct TupleAccess<'t> {
    tracer: Tracer<'t>,
    items: &'t RefCell<Vec<TypeShape>>,
    length: usize,
}

impl SeqAccess<'static> for TupleAccess<'_> {
    type Error = Unfit;

    fn next_element_seed<S: DeserializeSeed<'static>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unfit> {
        let place = self.items.borrow().len();
        if place == self.length {
            return Ok(None);
        }
        let shape = RefCell::default();
        let result = seed.deserialize(self.tracer.part(place, &shape));
        self.items.borrow_mut().push(shape.into_inner());
        result.map(Some)
    }
}

struct EntryAccess<'t> {
    tracer: Tracer<'t>,
    key: &'t RefCell<TypeShape>,
    value: &'t RefCell<TypeShape>,
    left: usize,
}

impl MapAccess<'static> for EntryAccess<'_> {
    type Error = Unfit;

    fn next_key_seed<S: DeserializeSeed<'static>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unfit> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(self.tracer.item("key", self.key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'static>>(&mut self, seed: S) -> Result<S::Value, Unfit> {
        seed.deserialize(self.tracer.item("value", self.value))
    }
}

struct FieldAccess<'t> {
    tracer: Tracer<'t>,
    names: &'static [&'static str],
    fields: &'t RefCell<Vec<RecordField>>,
    /// The position of the next field.
    next: usize,
}

impl MapAccess<'static> for FieldAccess<'_> {
    type Error = Unfit;

    fn next_key_seed<S: DeserializeSeed<'static>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unfit> {
        let search = self.tracer.search;
        while let Some(name) = self.names.get(self.next) {
            let place = step(self.tracer.place, name);
            search.fields.borrow_mut().push(place);
            if search.left_out.get() != Some(place) {
                return seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some);
            }
            self.next += 1;
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'static>>(&mut self, seed: S) -> Result<S::Value, Unfit> {
        let (place, shape) = (self.next, RefCell::default());
        let at = step(self.tracer.place, self.names[place]);
        self.next += 1;
        let result = seed.deserialize(self.tracer.part(self.names[place], &shape));
        let field = &mut self.fields.borrow_mut()[place];
        field.shape = shape.into_inner();
        // Fields of variants that were seen in other runs only are not tried.
        let was_tried = self.tracer.search.tried.borrow().contains(&at);
        field.may_be_absent |= !was_tried && matches!(field.shape, TypeShape::Optional(_));
        result
    }
}

struct ChoiceAccess<'t> {
    tracer: Tracer<'t>,
    word: &'static str,
    content: &'t RefCell<Option<TypeShape>>,
}

impl EnumAccess<'static> for ChoiceAccess<'_> {
    type Error = Unfit;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'static>>(self, seed: S) -> Result<(S::Value, Self), Unfit> {
        let word = BorrowedStrDeserializer::new(self.word);
        Ok((seed.deserialize(word)?, self))
    }
}

impl ChoiceAccess<'_> {
    fn content<T>(self, read: impl FnOnce(Tracer<'_>) -> Result<T, Unfit>) -> Result<T, Unfit> {
        let shape = RefCell::default();
        let result = read(self.tracer.part(self.word, &shape));
        self.content.replace(Some(shape.into_inner()));
        result
    }
}

impl VariantAccess<'static> for ChoiceAccess<'_> {
    type Error = Unfit;

    fn unit_variant(self) -> Result<(), Unfit> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'static>>(self, seed: S) -> Result<S::Value, Unfit> {
        self.content(|tracer| seed.deserialize(tracer))
    }

    fn tuple_variant<V: Visitor<'static>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.content(|tracer| tracer.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'static>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.content(|tracer| tracer.deserialize_struct("", names, visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value as Json;

    use super::*;
    use crate::store::{Id, Time};
    use crate::text::Text;
    use crate::wire::Bytes;

    /// The shape in the notation of TypeScript, without spaces.
    fn shown(shape: &TypeShape) -> String {
        match shape {
            TypeShape::Unknown => "?".to_owned(),
            TypeShape::Nothing => "null".to_owned(),
            TypeShape::Boolean => "boolean".to_owned(),
            TypeShape::Number => "number".to_owned(),
            TypeShape::LargeInteger => "large".to_owned(),
            TypeShape::Text => "text".to_owned(),
            TypeShape::Optional(inner) => format!("{}|null", shown(inner)),
            TypeShape::List(item) => format!("[{}..]", shown(item)),
            TypeShape::Tuple(items) => {
                format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(","))
            }
            TypeShape::Map(value) => format!("{{..:{}}}", shown(value)),
            TypeShape::Record(fields) => {
                let field = |own: &RecordField| {
                    let mark = if own.may_be_absent { "?" } else { "" };
                    format!("{}{mark}:{}", own.name, shown(&own.shape))
                };
                format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
            }
            TypeShape::Choice(variants) => {
                let variant = |own: &ChoiceVariant| match &own.content {
                    None => own.word.to_owned(),
                    Some(content) => format!("{}({})", own.word, shown(content)),
                };
                variants.iter().map(variant).collect::<Vec<_>>().join("|")
            }
        }
    }

    #[track_caller]
    fn check<T: Deserialize<'static>>(expected: &str) {
        assert_eq!(shown(&trace::<T>()), expected);
    }

    #[test]
    fn sees_values_of_bine_and_of_the_language() {
        check::<Text>("text");
        check::<String>("text");
        check::<&'static str>("text");
        check::<char>("text");
        check::<Id<()>>("text");
        check::<Time>("text");
        check::<Bytes>("text");
        check::<bool>("boolean");
        check::<u32>("number");
        check::<i8>("number");
        check::<f64>("number");
        check::<std::num::NonZeroU16>("number");
        check::<u64>("large");
        check::<i128>("large");
        check::<()>("null");
        check::<Option<u8>>("number|null");
        check::<Vec<Option<Text>>>("[text|null..]");
        check::<(Text, u8)>("[text,number]");
        check::<[u8; 20]>("[number..]");
        check::<BTreeMap<Text, Vec<u8>>>("{..:[number..]}");
        check::<Json>("?");
        check::<std::net::IpAddr>("text");
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the shape matters")]
    enum State {
        Packed,
        #[serde(rename = "on the way")]
        Sent,
        Lost {
            at: Time,
            note: Option<Text>,
        },
        Split(u8, Text),
        Moved(Id<()>),
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only the shape matters")]
    struct Order {
        item_name: Text,
        state: State,
        #[serde(default)]
        count: u32,
        note: Option<Text>,
        next: Option<State>,
        at: Time,
    }

    const STATE: &str =
        "Packed|on the way|Lost({at:text,note?:text|null})|Split([number,text])|Moved(text)";

    #[test]
    fn sees_all_variants_and_fields() {
        check::<State>(STATE);
        check::<Order>(&format!(
            "{{itemName:text,state:{STATE},count?:number,note?:text|null,next?:{STATE}|null,at:text}}"
        ));
        check::<Vec<Order>>(&format!(
            "[{{itemName:text,state:{STATE},count?:number,note?:text|null,next?:{STATE}|null,at:text}}..]"
        ));
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct Tree {
        name: Text,
        children: Vec<Tree>,
        parent: Option<Box<Tree>>,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the shape matters")]
    enum Formula {
        Number(f64),
        Sum(Vec<Formula>),
        Not(Box<Formula>),
    }

    #[test]
    fn ends_at_types_that_contain_themselves() {
        check::<Tree>("{name:text,children:[?..],parent?:?|null}");
        let formula = shown(&trace::<Formula>());
        assert!(formula.starts_with("Number(number)|Sum([?..])"), "{formula}");
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only the shape matters")]
    enum Untagged {
        Number(u8),
        Text(Text),
    }

    #[derive(Deserialize)]
    #[serde(try_from = "Text")]
    #[expect(dead_code, reason = "only the shape matters")]
    struct Strange(Text);

    impl TryFrom<Text> for Strange {
        type Error = &'static str;

        fn try_from(_: Text) -> Result<Self, &'static str> {
            Err("no text is good enough")
        }
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the shape matters")]
    struct WithStrange {
        first: u8,
        strange: Strange,
        last: u8,
    }

    struct Panicking;

    impl Deserialize<'static> for Panicking {
        fn deserialize<D: Deserializer<'static>>(from: D) -> Result<Self, D::Error> {
            let text = <&'static str>::deserialize(from)?;
            panic!("this type rejects `{text}` by a panic");
        }
    }

    #[test]
    fn leaves_unknown_what_a_type_does_not_show() {
        assert_eq!(super::super::shape_of::<Panicking>(), TypeShape::Unknown);
        check::<Untagged>("?");
        check::<(Untagged, u8)>("[?,?]");
        check::<Strange>("text");
        check::<WithStrange>("{first:number,strange:text,last:?}");
    }
}
