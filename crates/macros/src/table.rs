//! `#[derive(Table)]` and `#[derive(Enum)]`: schemas, row conversions, and a constant for each
//! index.

use bine_vocabulary::nearest;

use crate::column::{self, Expected};
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::item::{split_attributes, split_commas, split_visibility};
use crate::literal;
use crate::token::{Delimiter, Token};

mod missing_indexes;

/// Expands `#[derive(Table)]` on `item`.
pub(crate) fn table(item: &[Token]) -> Expansion {
    let mut faults = Vec::new();
    let row = read_struct(item, &mut faults);
    match row.filter(|_| faults.is_empty()) {
        Some(row) => {
            let mut emitter = TableEmitter::new(row.krate);
            emitter.table(&row);
            emitter.missing_indexes(&row);
            emitter.expansion
        }
        None => Expansion { faults, ..Expansion::default() },
    }
}

/// Expands `#[derive(Enum)]` on `item`.
pub(crate) fn word(item: &[Token]) -> Expansion {
    let mut faults = Vec::new();
    let words = read_enum(item, &mut faults);
    match words.filter(|_| faults.is_empty()) {
        Some(words) => {
            let mut emitter = TableEmitter::new(words.krate);
            emitter.word(&words);
            emitter.expansion
        }
        None => Expansion { faults, ..Expansion::default() },
    }
}

/// A struct that is the row type of a table.
struct Row<'t> {
    visibility: &'t [Token],
    name: &'t Token,
    krate: Option<&'t [Token]>,
    /// The name of the table, if it differs from the struct's.
    table: Option<String>,
    dropped: Vec<String>,
    columns: Vec<Column<'t>>,
    indexes: Vec<Index<'t>>,
}

struct Column<'t> {
    name: &'t Token,
    kind: &'t [Token],
    is_private: bool,
    length: Option<&'t [Token]>,
    range: Option<&'t [Token]>,
    default: Option<&'t [Token]>,
    label: Option<String>,
    was: Option<String>,
    /// The variant of `OnRemove`, if it is given.
    on_remove: Option<&'static str>,
}

struct Index<'t> {
    word: &'t Token,
    columns: Vec<usize>,
    is_unique: bool,
}

/// An enum whose variants are stored as words.
struct Words<'t> {
    name: &'t Token,
    krate: Option<&'t [Token]>,
    variants: Vec<&'t Token>,
}

/// One setting in `#[table(..)]`.
struct Setting<'t> {
    word: &'t Token,
    /// The tokens in parentheses; `value` contains the tokens after `=`.
    list: Option<&'t [Token]>,
    value: &'t [Token],
}

/// The name without `r#`.
fn spelled(name: &Token) -> &str {
    name.text.trim_start_matches("r#")
}

fn read_struct<'t>(item: &'t [Token], faults: &mut Vec<Fault>) -> Option<Row<'t>> {
    let (attributes, rest) = split_attributes(item);
    let (visibility, rest) = split_visibility(rest);
    let (name, fields) = match rest {
        [word, name, fields] if word.is("struct") && fields.group(Delimiter::Brace).is_some() => {
            (name, fields.group(Delimiter::Brace)?)
        }
        [word, name, angle, first, ..] if word.is("struct") && angle.is("<") => {
            let why = if first.text.starts_with('\'') {
                "a row owns its values and has no lifetimes: use `String` for text"
            } else {
                "a row type has no type parameters"
            };
            return reject(faults, name, why);
        }
        [word, name, ..] if word.is("struct") => {
            let own = spelled(name);
            let why = format!("a row has named fields: `struct {own} {{ id: Id<{own}>, .. }}`");
            return reject(faults, name, why);
        }
        [word, ..] if word.is("enum") => {
            let why = "a row is a struct; an enum that a column holds is `#[derive(Enum)]`";
            return reject(faults, word, why);
        }
        [word, ..] => {
            return reject(faults, word, "a row is a struct: `struct Name { id: Id<Name>, .. }`");
        }
        [] => return None,
    };
    let mut row = Row {
        visibility,
        name,
        krate: None,
        table: None,
        dropped: Vec::new(),
        columns: Vec::new(),
        indexes: Vec::new(),
    };
    let mut has_id = false;
    for field in split_commas(fields) {
        let (attributes, field) = split_attributes(field);
        let (_, field) = split_visibility(field);
        let [name, colon, kind @ ..] = field else { continue };
        if !name.is_word() || !colon.is(":") {
            continue;
        }
        if name.is("id") {
            has_id = true;
            read_id(kind, &attributes, row.name, faults);
            continue;
        }
        read_column(name, kind, &attributes, &mut row, faults);
    }
    if !has_id {
        let name = spelled(name);
        let message = format!("a row has an id: `id: Id<{name}>` as a field");
        faults.push(Fault::new(row.name, message));
    }
    for setting in settings(&attributes) {
        read_table_setting(&setting, &mut row, faults);
    }
    for (place, index) in row.indexes.iter().enumerate() {
        let is_known = row.indexes[..place].iter().any(|other| other.columns == index.columns);
        if is_known && !index.columns.is_empty() {
            let why = "an index of the same columns already exists; `unique` creates one too";
            faults.push(Fault::new(index.word, why));
        }
    }
    Some(row)
}

fn reject<T>(faults: &mut Vec<Fault>, token: &Token, message: impl Into<String>) -> Option<T> {
    faults.push(Fault::new(token, message));
    None
}

/// Types that users mistake for the type of an id.
const WRONG_ID_TYPES: [&str; 11] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i32", "i64", "String", "Uuid", "RowId"];

fn read_id(kind: &[Token], attributes: &[&[Token]], row: &Token, faults: &mut Vec<Fault>) {
    let is_wrong = match kind {
        [only] => WRONG_ID_TYPES.iter().any(|wrong| only.is(wrong)),
        [id, open, of, close] => {
            let is_own = of.is(&row.text) || of.is("Self");
            id.is("Id") && open.is("<") && close.is(">") && !is_own
        }
        _ => false,
    };
    if is_wrong {
        let own = spelled(row);
        faults.push(Fault::new(
            &kind[0],
            format!("the id of a row has the row's own type: `id: Id<{own}>`"),
        ));
    }
    for Setting { word, .. } in settings(attributes) {
        let why = "an id takes no options: it is always unique and indexed";
        faults.push(Fault::new(word, why));
    }
}

/// All settings of the `#[table(..)]` attributes.
fn settings<'t>(attributes: &[&'t [Token]]) -> Vec<Setting<'t>> {
    let mut all = Vec::new();
    for attribute in attributes {
        let Some([word, list]) = attribute[1].group(Delimiter::Bracket) else { continue };
        let Some(list) = list.group(Delimiter::Parenthesis).filter(|_| word.is("table")) else {
            continue;
        };
        for setting in split_commas(list) {
            let Some((word, rest)) = setting.split_first() else { continue };
            let list = rest.first().and_then(|first| first.group(Delimiter::Parenthesis));
            let value = match rest {
                [equals, value @ ..] if equals.is("=") => value,
                _ => &[],
            };
            all.push(Setting { word, list, value });
        }
    }
    all
}

/// The settings of columns and of tables.
const COLUMN_SETTINGS: [&str; 9] =
    ["index", "unique", "private", "length", "range", "default", "label", "was", "on_remove"];
const TABLE_SETTINGS: [&str; 5] = ["name", "index", "unique", "dropped", "crate"];

fn read_column<'t>(
    name: &'t Token,
    kind: &'t [Token],
    attributes: &[&'t [Token]],
    row: &mut Row<'t>,
    faults: &mut Vec<Fault>,
) {
    let place = row.columns.len();
    let mut column = Column {
        name,
        kind,
        is_private: false,
        length: None,
        range: None,
        default: None,
        label: None,
        was: None,
        on_remove: None,
    };
    for Setting { word, value, .. } in settings(attributes) {
        let needs_value =
            |example: &str| Fault::new(word, format!("`{}` has a value: `{example}`", word.text));
        match word.text.as_str() {
            "index" | "unique" => {
                let is_unique = word.is("unique");
                row.indexes.push(Index { word, columns: vec![place], is_unique });
            }
            "private" => column.is_private = true,
            "length" | "range" => {
                faults.extend(column::check_limit(word, value, kind));
                let limit = Some(value);
                *(if word.is("length") { &mut column.length } else { &mut column.range }) = limit;
            }
            "default" if value.is_empty() => faults.push(needs_value("default = 0")),
            "default" => {
                faults.extend(column::check_default(value, kind));
                column.default = Some(value);
            }
            "label" => match text(value) {
                Some(label) => column.label = Some(label),
                None => faults.push(needs_value("label = \"E-mail\"")),
            },
            "was" => match text(value) {
                Some(was) => column.was = Some(was),
                None => faults.push(needs_value("was = \"name\"")),
            },
            "on_remove" => match column::on_remove(word, value, kind) {
                Ok(rule) => column.on_remove = Some(rule),
                Err(fault) => faults.push(fault),
            },
            other if TABLE_SETTINGS.contains(&other) => {
                let why = format!("`{other}` is an option of a table: put it on the struct");
                faults.push(Fault::new(word, why));
            }
            _ => faults.push(unknown(word, "column", &COLUMN_SETTINGS)),
        }
    }
    row.columns.push(column);
}

fn unknown(word: &Token, what: &str, known: &[&str]) -> Fault {
    let meant = match nearest(&word.text, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are `{}`", known.join("`, `")),
    };
    Fault::new(word, format!("`{}` is not an option of a {what}: {meant}", word.text))
}

fn read_table_setting<'t>(setting: &Setting<'t>, row: &mut Row<'t>, faults: &mut Vec<Fault>) {
    let Setting { word, list, value } = *setting;
    let key = word.text.as_str();
    let why = match (key, list, text(value)) {
        ("index" | "unique", Some(list), _) if !list.is_empty() => {
            let columns = read_index(list, row, faults);
            if columns.len() > 4 {
                faults.push(Fault::new(word, "an index has at most four columns"));
            }
            row.indexes.push(Index { word, columns, is_unique: word.is("unique") });
            return;
        }
        ("name", None, Some(name)) => return row.table = Some(name),
        ("dropped", None, Some(name)) => return row.dropped.push(name),
        ("crate", None, _) if !value.is_empty() => return row.krate = Some(value),
        ("index" | "unique", ..) => format!("`{key}` names its columns: `{key}(a, b)`"),
        ("name" | "dropped", ..) => format!("`{key}` has a value in quotes: `{key} = \"name\"`"),
        ("crate", ..) => "`crate` has a path: `crate = path`".to_owned(),
        _ if COLUMN_SETTINGS.contains(&key) => {
            format!("`{key}` is an option of a column: put it on the field")
        }
        _ => return faults.push(unknown(word, "table", &TABLE_SETTINGS)),
    };
    faults.push(Fault::new(word, why));
}

/// The indexes of the named columns.
fn read_index(list: &[Token], row: &Row<'_>, faults: &mut Vec<Fault>) -> Vec<usize> {
    let mut columns = Vec::new();
    for names in split_commas(list) {
        let name = &names[0];
        let known = || row.columns.iter().map(|column| column.name.text.as_str());
        if let Some(found) = known().position(|known| name.is(known)) {
            columns.push(found);
        } else if name.is("id") {
            faults.push(Fault::new(name, "ids need no index"));
        } else {
            let meant = match nearest(&name.text, known()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("there are `{}`", known().collect::<Vec<_>>().join("`, `")),
            };
            let why = format!("there is no column `{}`: {meant}", name.text);
            faults.push(Fault::new(name, why));
        }
        if let Some(next) = names.get(1) {
            faults.push(Fault::new(next, "separate the columns of an index with commas"));
        }
    }
    columns
}

/// The value of a single string literal.
fn text(value: &[Token]) -> Option<String> {
    let [value] = value else { return None };
    literal::string(value)?.ok()
}

fn read_enum<'t>(item: &'t [Token], faults: &mut Vec<Fault>) -> Option<Words<'t>> {
    const WANTED: &str = "words are an enum without fields: `enum State { Open, Shut }`";
    let (attributes, rest) = split_attributes(item);
    let (_, rest) = split_visibility(rest);
    let (name, variants) = match rest {
        [word, name, variants] if word.is("enum") => match variants.group(Delimiter::Brace) {
            Some(variants) => (name, variants),
            None => return reject(faults, name, WANTED),
        },
        [word, name, ..] if word.is("enum") => return reject(faults, name, WANTED),
        [word, ..] => return reject(faults, word, WANTED),
        [] => return None,
    };
    let mut words = Words { name, krate: None, variants: Vec::new() };
    for variant in split_commas(variants) {
        match split_attributes(variant).1 {
            [variant] if variant.is_word() => {
                let small = |word: &Token| snake_case(spelled(word));
                let like = words.variants.iter().find(|other| small(other) == small(variant));
                if let Some(like) = like {
                    let own = spelled(variant);
                    let kept = small(variant);
                    let like = spelled(like);
                    let why = format!("`{own}` is stored as `{kept}`, and so is `{like}`");
                    faults.push(Fault::new(variant, why));
                }
                words.variants.push(variant);
            }
            [variant, next, ..] if next.is("=") => {
                let why = "a word has no number: the store uses its position";
                faults.push(Fault::new(variant, why));
            }
            [variant, ..] => {
                let why = "a word has no fields: store its data in another column";
                faults.push(Fault::new(variant, why));
            }
            [] => {}
        }
    }
    if words.variants.is_empty() && faults.is_empty() {
        return reject(faults, name, WANTED);
    }
    for Setting { word, value, .. } in settings(&attributes) {
        match value {
            [_, ..] if word.is("crate") => words.krate = Some(value),
            _ => return reject(faults, word, "words take only the option `crate = path`"),
        }
    }
    Some(words)
}

/// Converts `BoardMessage` to `board_message`.
fn snake_case(name: &str) -> String {
    let mut small = String::new();
    for (place, letter) in name.chars().enumerate() {
        if letter.is_uppercase() && place > 0 {
            small.push('_');
        }
        small.extend(letter.to_lowercase());
    }
    small
}

struct TableEmitter<'t> {
    expansion: Expansion,
    krate: Option<&'t [Token]>,
}

impl<'t> TableEmitter<'t> {
    fn new(krate: Option<&'t [Token]>) -> Self {
        Self { expansion: Expansion::default(), krate }
    }

    fn table(&mut self, row: &Row<'_>) {
        self.code("#[automatically_derived] impl");
        self.store("Table for");
        self.name(row.name);
        self.code("{ const NAME: &'static ::core::primitive::str =");
        let name = row.table.clone().unwrap_or_else(|| snake_case(spelled(row.name)));
        self.expansion.string(&name);
        self.code("; fn schema() ->");
        self.store("Schema { let mut schema =");
        self.store("Schema::new(Self::NAME);");
        for column in &row.columns {
            self.column(column);
        }
        for index in &row.indexes {
            self.code("schema.indexes.push(");
            let Index { columns, is_unique, .. } = index;
            self.store(&format!(
                "Index {{ columns: ::std::vec!{columns:?}, is_unique: {is_unique} }});"
            ));
        }
        for name in &row.dropped {
            self.code("schema.dropped.push(::std::borrow::Cow::Borrowed(");
            self.expansion.string(name);
            self.code("));");
        }
        self.code("schema } fn id(&self) ->");
        self.store("RowId { self.id.row() } fn set_id(&mut self, id:");
        self.store("RowId) { self.id =");
        self.store("Id::of(id); } fn values<'r>(&'r self, to: &mut ::std::vec::Vec<");
        self.store("Value<'r>>) {");
        for column in &row.columns {
            self.code("to.push(");
            self.field(column, "value");
            self.code("(&self.");
            self.name(column.name);
            self.code("));");
        }
        self.code("} fn from_values(id:");
        self.store("RowId, values: &[");
        self.store("Value<'_>]) -> ::core::option::Option<Self> {");
        self.code(&format!(
            "if values.len() != {} {{ return ::core::option::Option::None; }}",
            row.columns.len()
        ));
        self.code("::core::option::Option::Some(Self { id:");
        self.store("Id::of(id),");
        for (place, column) in row.columns.iter().enumerate() {
            self.name(column.name);
            self.code(":");
            self.field(column, "from_value");
            self.code(&format!("(values[{place}])?,"));
        }
        self.code("}) } }");
        self.constants(row);
        // The tables of Bine's own crates are added by the subsystem that needs them.
        if row.krate.is_none() {
            self.link(row);
        }
    }

    /// Registers the table with the linker, so that the program can check whether it was added.
    fn link(&mut self, row: &Row<'_>) {
        self.private("submit! {");
        self.private("LinkedTable { row_type: ::core::any::TypeId::of::<");
        self.name(row.name);
        self.code(">, path: ::core::any::type_name::<");
        self.name(row.name);
        self.code(&format!(">, file: ::core::file!(), line: {} }} }}", row.name.line));
    }

    fn column(&mut self, column: &Column<'_>) {
        let name = spelled(column.name);
        self.code("{ let mut column =");
        self.store("Column::new(");
        self.expansion.string(name);
        self.code(",");
        self.field(column, "kind()); column.is_optional =");
        self.field(column, "IS_OPTIONAL;");
        if column.is_private {
            self.code("column.is_private = true;");
        }
        for (limit, bounds) in [("length", column.length), ("range", column.range)] {
            let Some(bounds) = bounds else { continue };
            let number = if limit == "length" { "usize" } else { "f64" };
            self.code("let limit =");
            self.expansion.run(bounds);
            self.code(&format!(
                "; column.{limit} = ::core::option::Option::Some((*limit.start() as {number}, *limit.end() as {number}));"
            ));
        }
        if let Some(default) = column.default {
            self.code("column.default = ::core::option::Option::Some(");
            self.store("Constant::from({ let default");
            if let Some(text) = column::default_of(column.kind) {
                // The type makes the compiler check the default.
                self.code(":");
                match text {
                    Expected::Text => self.code("&'static ::core::primitive::str"),
                    Expected::Same(kind) => drop(self.expansion.run(kind)),
                }
            }
            self.code("=");
            self.expansion.run(default);
            self.code("; default }));");
        }
        for (field, text) in [("former_name", &column.was), ("label", &column.label)] {
            let Some(text) = text else { continue };
            self.code(&format!(
                "column.{field} = ::core::option::Option::Some(::std::borrow::Cow::Borrowed("
            ));
            self.expansion.string(text);
            self.code("));");
        }
        if let Some(rule) = column.on_remove {
            self.code("column.on_remove =");
            self.store(&format!("OnRemove::{rule};"));
        }
        self.code("schema.columns.push(column); }");
    }

    /// Emits an item of the column type's `Field` implementation. Compile errors point at the type.
    fn field(&mut self, column: &Column<'_>, name: &str) {
        self.code("<");
        self.expansion.run(column.kind);
        self.code("as");
        self.store(&format!("Field>::{name}"));
    }

    /// Emits the constants by which queries name the columns and indexes.
    fn constants(&mut self, row: &Row<'_>) {
        if row.columns.is_empty() {
            return;
        }
        self.code("impl");
        self.name(row.name);
        self.code("{");
        for (place, column) in row.columns.iter().enumerate() {
            let name = spelled(column.name);
            self.code(&format!(
                "#[doc = \"The column `{name}`.\"] #[allow(dead_code, private_interfaces)]"
            ));
            self.expansion.run(row.visibility);
            self.code("const ");
            let run = self.expansion.runs.len();
            self.expansion.word_at(run, &format!("COLUMN_{}", name.to_uppercase()));
            self.code(": ");
            self.store("ColumnOf<Self,");
            self.expansion.run(column.kind);
            self.code("> =");
            self.store(&format!("ColumnOf::position({place});"));
        }
        for (place, index) in row.indexes.iter().enumerate() {
            let names: Vec<&str> =
                index.columns.iter().map(|column| spelled(row.columns[*column].name)).collect();
            let columns = names.join("`, `");
            self.code(&format!("#[doc = \"Rows by `{columns}`.\"]"));
            self.expansion.run(row.visibility);
            self.code("const ");
            let run = self.expansion.runs.len();
            self.expansion.word_at(run, &format!("BY_{}", names.join("_").to_uppercase()));
            self.code(": ");
            self.store("IndexOf<Self, (");
            for column in &index.columns {
                self.expansion.run(row.columns[*column].kind);
                self.code(",");
            }
            self.code(")> =");
            self.store(&format!("IndexOf::position({place});"));
        }
        self.code("}");
    }

    fn word(&mut self, words: &Words<'_>) {
        let count = words.variants.len();
        self.code("#[automatically_derived] impl");
        self.store("Field for");
        self.name(words.name);
        self.code("{ fn kind() ->");
        self.store(
            "Kind { const WORDS: &[::std::borrow::Cow<'static, ::core::primitive::str>] = &[",
        );
        for variant in &words.variants {
            self.code("::std::borrow::Cow::Borrowed(");
            self.expansion.string(&snake_case(spelled(variant)));
            self.code("),");
        }
        self.code("];");
        self.store("Kind::Enum(::std::borrow::Cow::Borrowed(WORDS)) } fn value(&self) ->");
        self.store("Value<'_> {");
        self.store("Value::Enum(match self {");
        for (place, variant) in words.variants.iter().enumerate() {
            self.code("Self::");
            self.name(variant);
            self.code(&format!("=> {place}_u16,"));
        }
        self.code("}) } fn from_value(value:");
        self.store("Value<'_>) -> ::core::option::Option<Self> { match value {");
        for (place, variant) in words.variants.iter().enumerate() {
            self.store(&format!("Value::Enum({place}_u16) => ::core::option::Option::Some(Self::"));
            self.name(variant);
            self.code("),");
        }
        self.code("_ => ::core::option::Option::None } } }");
        debug_assert!(count > 0, "an enum without words is rejected");
    }

    fn name(&mut self, name: &Token) {
        self.expansion.run(std::slice::from_ref(name));
    }

    /// Emits the path of an item in the store module.
    fn store(&mut self, name: &str) {
        self.path("::store::", name);
    }

    /// Emits the path of an item that only macros use.
    fn private(&mut self, name: &str) {
        self.path("::__private::", name);
    }

    fn path(&mut self, module: &str, name: &str) {
        match self.krate {
            Some(krate) => {
                self.expansion.run(krate);
            }
            None => self.code(" ::bine"),
        }
        self.code(module);
        self.code(name);
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}
