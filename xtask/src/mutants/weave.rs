//! Source text that contains all mutants of a file, each with a switch.
//!
//! `a + b` becomes `(if is(7) { a - b } else if is(8) { a * b } else { a + b })`. One build then
//! serves all mutants, where cargo-mutants builds once per mutant (Untch, Offutt and Harrold,
//! "Mutation analysis using mutant schemata", 1993). Only one mutant is active at a time, so the
//! alternatives contain the original text of nested expressions, and the size of the result grows
//! with the depth of nesting, not exponentially.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::list::{Kind, Mutant, Position};

/// The function that the woven text calls.
const SWITCH: &str = "crate::mutant_switch::is";

/// Parts that the woven file omits, because compiler errors have named them.
#[derive(Default)]
pub(super) struct Exclusions {
    /// Numbers of mutants that do not compile.
    pub(super) mutants: BTreeSet<usize>,
    /// Names of functions that must stay `const`, because constants need them.
    pub(super) const_functions: BTreeSet<String>,
}

/// A file and its mutants with their switches.
#[derive(Default)]
pub(super) struct Woven {
    pub(super) text: String,
    /// The mutants that `text` contains, with the bytes of `text` that belong to each alone.
    pub(super) alternatives: Vec<(Range<usize>, usize)>,
    /// The bytes of `text` where each mutant's switch, alternatives and original are.
    pub(super) sites: Vec<(Range<usize>, Vec<usize>)>,
    /// The bytes of `text` of each function, with its mutants.
    pub(super) functions: Vec<(Range<usize>, Vec<usize>)>,
    /// Mutants of conditions with `let`, which permit no other operator and declare variables.
    pub(super) invalid: Vec<usize>,
}

/// One edit of the original text.
struct Site {
    range: Range<usize>,
    /// An outer site of an equal range has the lower rank.
    rank: u8,
    edit: Edit,
}

enum Edit {
    /// The range becomes a choice between alternatives and itself.
    Choice(Vec<(usize, String)>),
    /// Text before the (empty) range. The second part belongs to the mutant alone.
    Insertion { mutant: Option<usize>, before: String, alternative: String, after: String },
    /// A match whose arms have mutants; a marker without a change of text.
    Group(Vec<usize>),
    /// The text of the range is omitted.
    Deletion,
}

/// Adds the mutants of one file, each with its number and a switch.
pub(super) fn weave(
    source: &str,
    mutants: &[(usize, &Mutant)],
    exclusions: &Exclusions,
) -> Result<Woven> {
    let file = syn::parse_file(source).context("cannot parse the file")?;
    let lines = Lines::new(source);
    let mut wanted: BTreeMap<Position, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants {
        if !exclusions.mutants.contains(number) {
            wanted.entry(mutant.start).or_default().push((*number, mutant));
        }
    }
    let mut finder = Finder {
        source,
        lines: &lines,
        wanted,
        exclusions,
        is_constant: false,
        sites: Vec::new(),
        functions: Vec::new(),
        invalid: Vec::new(),
    };
    finder.visit_file(&file);
    let Finder { mut sites, functions, invalid, .. } = finder;
    // From outer to inner; an insertion is before everything that starts at its place.
    sites.sort_by_key(|site| {
        (site.range.start, !site.range.is_empty(), usize::MAX - site.range.end, site.rank)
    });
    let woven = Woven { invalid, ..Woven::default() };
    let mut writer = Writer { source, woven, starts: Vec::new() };
    writer.write(0..source.len(), &sites);
    let Writer { mut woven, mut starts, .. } = writer;
    starts.sort_unstable();
    let moved = |byte: usize| {
        let index = starts.partition_point(|(from, _)| *from <= byte);
        let (from, to) = starts[index.saturating_sub(1)];
        to + (byte - from)
    };
    let contained: BTreeSet<usize> =
        woven.sites.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect();
    for range in functions {
        let moved = moved(range.start)..moved(range.end - 1) + 1;
        let inside = |(number, mutant): &(usize, &Mutant)| {
            let is_inside = range.contains(&lines.byte(mutant.start));
            (is_inside && contained.contains(number)).then_some(*number)
        };
        woven.functions.push((moved, mutants.iter().filter_map(inside).collect()));
    }
    Ok(woven)
}

impl Woven {
    /// The mutants that the woven text contains.
    pub(super) fn mutants(&self) -> BTreeSet<usize> {
        self.sites.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect()
    }

    /// The mutants that an error at these bytes of the text is most likely about: the one whose
    /// alternative contains it, else those of the smallest site around it, else those of the
    /// smallest function around it.
    pub(super) fn suspects(&self, error: &Range<usize>) -> Vec<usize> {
        let surrounds = |range: &Range<usize>| {
            range.start <= error.start && error.start < range.end.max(range.start + 1)
        };
        let smallest = |ranges: &[(Range<usize>, Vec<usize>)]| {
            let around = ranges.iter().filter(|(range, all)| surrounds(range) && !all.is_empty());
            around.min_by_key(|(range, _)| range.len()).map(|(_, all)| all.clone())
        };
        let alternatives = self.alternatives.iter().filter(|(range, _)| surrounds(range));
        if let Some((_, number)) = alternatives.min_by_key(|(range, _)| range.len()) {
            return vec![*number];
        }
        smallest(&self.sites).or_else(|| smallest(&self.functions)).unwrap_or_default()
    }
}

/// Finds the expressions that mutants change.
struct Finder<'a> {
    source: &'a str,
    lines: &'a Lines<'a>,
    /// The mutants by the position where each starts. Found ones are removed.
    wanted: BTreeMap<Position, Vec<(usize, &'a Mutant)>>,
    exclusions: &'a Exclusions,
    /// Whether the visited code is evaluated at compile time, where no switch can be.
    is_constant: bool,
    sites: Vec<Site>,
    functions: Vec<Range<usize>>,
    invalid: Vec<usize>,
}

impl Finder<'_> {
    /// Takes the mutants of one kind that start at this token.
    fn take(&mut self, kind: Kind, span: proc_macro2::Span) -> Vec<(usize, String)> {
        let start = span.start();
        self.take_at(kind, Position { line: start.line, column: start.column + 1 })
    }

    fn take_at(&mut self, kind: Kind, position: Position) -> Vec<(usize, String)> {
        if self.is_constant {
            return Vec::new();
        }
        let Some(found) = self.wanted.get_mut(&position) else { return Vec::new() };
        let taken = found.extract_if(.., |(_, mutant)| mutant.kind == kind);
        taken.map(|(number, mutant)| (number, mutant.replacement.clone())).collect()
    }

    fn bytes(&self, span: proc_macro2::Span) -> Range<usize> {
        let at = |place: proc_macro2::LineColumn| {
            self.lines.byte(Position { line: place.line, column: place.column + 1 })
        };
        at(span.start())..at(span.end())
    }

    fn add(&mut self, range: Range<usize>, rank: u8, edit: Edit) {
        self.sites.push(Site { range, rank, edit });
    }

    fn constant(&mut self, visit: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.is_constant, true);
        visit(self);
        self.is_constant = before;
    }

    /// A function: its body can be replaced, and it is not `const` if it need not be.
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let before = self.is_constant;
        self.is_constant = false;
        if let Some(token) = signature.constness {
            if self.exclusions.const_functions.contains(&signature.ident.to_string()) {
                self.is_constant = true;
            } else {
                let range = self.bytes(token.span);
                self.add(range, 0, Edit::Deletion);
            }
        }
        self.functions.push(self.bytes(block.span()));
        if let Some(first) = block.stmts.first() {
            let start = self.bytes(first.span()).start;
            let position = first.span().start();
            let position = Position { line: position.line, column: position.column + 1 };
            for (number, replacement) in self.take_at(Kind::FunctionBody, position) {
                let insertion = Edit::Insertion {
                    mutant: Some(number),
                    before: format!("if {SWITCH}({number}) {{ return "),
                    alternative: replacement,
                    after: "; } ".to_owned(),
                };
                self.add(start..start, 0, insertion);
            }
        }
        visit::visit_block(self, block);
        self.is_constant = before;
    }

    /// An expression with a different operator.
    fn operator(&mut self, kind: Kind, whole: proc_macro2::Span, operator: proc_macro2::Span) {
        let found = self.take(kind, operator);
        if found.is_empty() {
            return;
        }
        let (whole, operator) = (self.bytes(whole), self.bytes(operator));
        let with = |(number, replacement): (usize, String)| {
            let before = &self.source[whole.start..operator.start];
            let after = &self.source[operator.end..whole.end];
            (number, format!("{before}{replacement}{after}"))
        };
        let alternatives = found.into_iter().map(with).collect();
        self.add(whole, 2, Edit::Choice(alternatives));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.constant(|this| visit::visit_item_const(this, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.constant(|this| visit::visit_item_static(this, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.constant(|this| visit::visit_impl_item_const(this, item));
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.constant(|this| visit::visit_trait_item_const(this, item));
    }

    fn visit_type(&mut self, item: &'ast syn::Type) {
        self.constant(|this| visit::visit_type(this, item));
    }

    fn visit_generic_argument(&mut self, item: &'ast syn::GenericArgument) {
        self.constant(|this| visit::visit_generic_argument(this, item));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.constant(|this| visit::visit_item_enum(this, item));
    }

    fn visit_expr_const(&mut self, item: &'ast syn::ExprConst) {
        self.constant(|this| visit::visit_expr_const(this, item));
    }

    fn visit_expr_repeat(&mut self, item: &'ast syn::ExprRepeat) {
        self.visit_expr(&item.expr);
        self.constant(|this| this.visit_expr(&item.len));
    }

    fn visit_pat(&mut self, item: &'ast syn::Pat) {
        self.constant(|this| visit::visit_pat(this, item));
    }

    fn visit_expr_binary(&mut self, item: &'ast syn::ExprBinary) {
        if has_let(&item.left) || has_let(&item.right) {
            let found = self.take(Kind::BinaryOperator, item.op.span());
            self.invalid.extend(found.into_iter().map(|(number, _)| number));
        } else {
            self.operator(Kind::BinaryOperator, item.span(), item.op.span());
        }
        visit::visit_expr_binary(self, item);
    }

    fn visit_expr_unary(&mut self, item: &'ast syn::ExprUnary) {
        self.operator(Kind::UnaryOperator, item.span(), item.op.span());
        visit::visit_expr_unary(self, item);
    }

    fn visit_expr_match(&mut self, item: &'ast syn::ExprMatch) {
        let mut arms = Vec::new();
        for arm in &item.arms {
            for (number, _) in self.take(Kind::MatchArm, arm.span()) {
                arms.push(number);
                let (at, before) = match &arm.guard {
                    Some((_, guard)) => (self.bytes(guard.span()).start, ""),
                    None => (self.bytes(arm.fat_arrow_token.span()).start, " if "),
                };
                let after = if arm.guard.is_some() { " && " } else { " " };
                let insertion = Edit::Insertion {
                    mutant: None,
                    before: format!("{before}!{SWITCH}({number}){after}"),
                    alternative: String::new(),
                    after: String::new(),
                };
                self.add(at..at, 0, insertion);
            }
            let Some((_, guard)) = &arm.guard else { continue };
            let found = self.take(Kind::MatchArmGuard, guard.span());
            if has_let(guard) {
                // Without it, the arm lacks the variable.
                self.invalid.extend(found.into_iter().map(|(number, _)| number));
                continue;
            }
            let range = self.bytes(guard.span());
            // In parentheses even without a mutant: a deletable arm puts `&&` before it.
            self.add(range, 1, Edit::Choice(found));
        }
        if !arms.is_empty() {
            self.add(self.bytes(item.span()), 3, Edit::Group(arms));
        }
        visit::visit_expr_match(self, item);
    }

    fn visit_expr_struct(&mut self, item: &'ast syn::ExprStruct) {
        if let Some(base) = &item.rest {
            let base = &self.source[self.bytes(base.span())];
            for field in &item.fields {
                let found = self.take(Kind::StructField, field.span());
                let Some((number, _)) = found.first() else { continue };
                let syn::Member::Named(name) = &field.member else { continue };
                let alternative = format!("({base}).{name}");
                if field.colon_token.is_some() {
                    let range = self.bytes(field.expr.span());
                    self.add(range, 1, Edit::Choice(vec![(*number, alternative)]));
                } else {
                    let end = self.bytes(field.span()).end;
                    let insertion = Edit::Insertion {
                        mutant: Some(*number),
                        before: format!(": if {SWITCH}({number}) {{ "),
                        alternative,
                        after: format!(" }} else {{ {name} }}"),
                    };
                    self.add(end..end, 0, insertion);
                }
            }
        }
        visit::visit_expr_struct(self, item);
    }
}

fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) if matches!(binary.op, syn::BinOp::And(_)) => {
            has_let(&binary.left) || has_let(&binary.right)
        }
        _ => false,
    }
}

/// Writes the text with its sites replaced.
struct Writer<'a> {
    source: &'a str,
    woven: Woven,
    /// Where pieces of the original start, in the original and in the result.
    starts: Vec<(usize, usize)>,
}

impl Writer<'_> {
    /// Writes a range of the original with the sites in it, which are sorted from outer to inner.
    fn write(&mut self, range: Range<usize>, sites: &[Site]) {
        let mut written = range.start;
        let mut index = 0;
        while index < sites.len() {
            let site = &sites[index];
            let inner = sites[index + 1..]
                .iter()
                .take_while(|inner| inner.range.start < site.range.end)
                .count();
            self.copy(written..site.range.start);
            let inner = &sites[index + 1..index + 1 + inner];
            self.write_site(site, inner);
            written = site.range.end;
            index += 1 + inner.len();
        }
        self.copy(written..range.end);
    }

    fn write_site(&mut self, site: &Site, inner: &[Site]) {
        let start = self.woven.text.len();
        match &site.edit {
            Edit::Choice(alternatives) => {
                self.woven.text.push('(');
                for (number, alternative) in alternatives {
                    write!(self.woven.text, "if {SWITCH}({number}) {{ ").expect("a String grows");
                    self.alternative(*number, alternative);
                    self.woven.text.push_str(" } else ");
                }
                let is_choice = !alternatives.is_empty();
                self.woven.text.push_str(if is_choice { "{ " } else { "" });
                self.write(site.range.clone(), inner);
                self.woven.text.push_str(if is_choice { " })" } else { ")" });
                self.site(start, alternatives.iter().map(|(number, _)| *number).collect());
            }
            Edit::Insertion { mutant, before, alternative, after } => {
                self.woven.text.push_str(before);
                if let Some(number) = mutant {
                    self.alternative(*number, alternative);
                }
                self.woven.text.push_str(after);
                self.site(start, mutant.iter().copied().collect());
            }
            Edit::Group(numbers) => {
                self.write(site.range.clone(), inner);
                self.site(start, numbers.clone());
            }
            Edit::Deletion => {}
        }
    }

    fn alternative(&mut self, number: usize, text: &str) {
        let start = self.woven.text.len();
        self.woven.text.push_str(text);
        self.woven.alternatives.push((start..self.woven.text.len(), number));
    }

    fn site(&mut self, start: usize, numbers: Vec<usize>) {
        self.woven.sites.push((start..self.woven.text.len(), numbers));
    }

    fn copy(&mut self, range: Range<usize>) {
        self.starts.push((range.start, self.woven.text.len()));
        self.woven.text.push_str(&self.source[range]);
    }
}

/// The bytes of positions.
pub(super) struct Lines<'a> {
    source: &'a str,
    /// The first byte of each line.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let ends = source.match_indices('\n').map(|(at, _)| at + 1);
        Self { source, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// The byte of a position; the end of the text if it has no such position.
    pub(super) fn byte(&self, position: Position) -> usize {
        let Some(start) = self.starts.get(position.line - 1) else { return self.source.len() };
        let rest = &self.source[*start..];
        let column = rest.char_indices().nth(position.column - 1);
        column.map_or(self.source.len(), |(offset, _)| start + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Weaves mutants, given as kind, place and replacement.
    fn woven(source: &str, mutants: &[(Kind, (usize, usize), &str)]) -> Woven {
        let mutant = |(kind, (line, column), replacement): &(Kind, (usize, usize), &str)| Mutant {
            name: String::new(),
            file: String::new(),
            kind: *kind,
            start: Position { line: *line, column: *column },
            end: Position { line: *line, column: column + 1 },
            replacement: (*replacement).to_owned(),
        };
        let mutants: Vec<Mutant> = mutants.iter().map(mutant).collect();
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        weave(source, &numbered, &Exclusions::default()).unwrap()
    }

    fn check(source: &str, mutants: &[(Kind, (usize, usize), &str)], expected: &str) {
        let text = woven(source, mutants).text.replace("crate::mutant_switch::", "");
        assert_eq!(text, expected);
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn chooses_between_operators() {
        check(
            "fn f() { a + b; }",
            &[(Kind::BinaryOperator, (1, 12), "-"), (Kind::BinaryOperator, (1, 12), "*")],
            "fn f() { (if is(0) { a - b } else if is(1) { a * b } else { a + b }); }",
        );
        check(
            "fn f() { !a }",
            &[(Kind::UnaryOperator, (1, 10), "")],
            "fn f() { (if is(0) { a } else { !a }) }",
        );
    }

    #[test]
    fn keeps_the_original_inside_an_alternative() {
        check(
            "fn f() { a + b + c }",
            &[(Kind::BinaryOperator, (1, 12), "-"), (Kind::BinaryOperator, (1, 16), "*")],
            "fn f() { (if is(1) { a + b * c } else { (if is(0) { a - b } else { a + b }) + c }) }",
        );
    }

    #[test]
    fn returns_early_from_a_function() {
        check(
            "const fn f() -> u8 { a + 1 }",
            &[(Kind::FunctionBody, (1, 22), "0"), (Kind::BinaryOperator, (1, 24), "-")],
            " fn f() -> u8 { if is(0) { return 0; } (if is(1) { a - 1 } else { a + 1 }) }",
        );
    }

    #[test]
    fn guards_the_arms_of_a_match() {
        check(
            "fn f() { match a { 1 => b, 2 if c || d => e, _ => g } }",
            &[
                (Kind::MatchArm, (1, 20), ""),
                (Kind::MatchArm, (1, 28), ""),
                (Kind::MatchArmGuard, (1, 33), "true"),
                (Kind::BinaryOperator, (1, 35), "&&"),
            ],
            "fn f() { match a { 1  if !is(0) => b, 2 if !is(1) && (if is(2) { true } else { \
             (if is(3) { c && d } else { c || d }) }) => e, _ => g } }",
        );
    }

    #[test]
    fn takes_deleted_fields_from_the_base() {
        check(
            "fn f() { A { b: c, d, ..e() } }",
            &[(Kind::StructField, (1, 14), ""), (Kind::StructField, (1, 20), "")],
            "fn f() { A { b: (if is(0) { (e()).b } else { c }), d: if is(1) { (e()).d } else { d }, \
             ..e() } }",
        );
    }

    #[test]
    fn leaves_constants_alone() {
        let source = "const A: u8 = 1 + 2; fn f() { let a = [0; 1 + 2]; }";
        let mutants = [(Kind::BinaryOperator, (1, 17), "-"), (Kind::BinaryOperator, (1, 46), "-")];
        assert_eq!(woven(source, &mutants).text, source);
    }

    #[test]
    fn keeps_a_guard_with_let() {
        check(
            "fn f() { match a { b if let Some(c) = d(b) => c, _ => e } }",
            &[(Kind::MatchArm, (1, 20), ""), (Kind::MatchArmGuard, (1, 25), "true")],
            "fn f() { match a { b if !is(0) && let Some(c) = d(b) => c, _ => e } }",
        );
    }

    #[test]
    fn reports_operators_that_no_chain_with_let_permits() {
        let source = "fn f() { if let Some(a) = b && a < c {} }";
        let mutants = [(Kind::BinaryOperator, (1, 29), "||"), (Kind::BinaryOperator, (1, 34), ">")];
        let woven = woven(source, &mutants);
        assert_eq!((woven.invalid, woven.sites.len()), (vec![0], 1));
    }

    #[test]
    fn attributes_an_error_to_the_smallest_place() {
        let source = "fn f() { a + b; c } fn g() { d }";
        let mutants = [(Kind::BinaryOperator, (1, 12), "-"), (Kind::BinaryOperator, (1, 12), "*")];
        let woven = woven(source, &mutants);
        let at = |text: &str| {
            let start = woven.text.find(text).unwrap();
            woven.suspects(&(start..start + 1))
        };
        assert_eq!(at("a - b"), [0]);
        assert_eq!(at("a * b"), [1]);
        assert_eq!(at("a + b"), [0, 1]);
        assert_eq!(at("c }"), [0, 1]);
        assert!(at("d }").is_empty());
    }

    #[test]
    fn finds_the_bytes_of_positions() {
        let lines = Lines::new("a\nb\u{e9}c");
        let byte = |line, column| lines.byte(Position { line, column });
        assert_eq!([byte(1, 1), byte(2, 2), byte(2, 3), byte(9, 1)], [0, 3, 5, 6]);
    }
}
