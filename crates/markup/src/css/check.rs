//! Validation of a style sheet: the place and the content of each statement.

use bine_vocabulary::{self as vocabulary, Words};

use super::lex::{Piece, PieceKind};
use super::parse::Mistake;
use super::selector::{self, SelectorContext};
use super::tree::{AtRule, Declaration, Item, Rule};
use super::{did_you_mean, prelude, value};

/// Reports the errors in a sheet. `is_scoped`: its names are local to the sheet.
pub fn sheet(items: &[Item<'_>], is_scoped: bool, mistakes: &mut Vec<Mistake>) {
    StyleChecker { is_scoped, mistakes }.items(items, StatementContext::Sheet);
}

/// Reports the errors in the value of a `style` attribute.
pub(super) fn attribute(items: &[Item<'_>], mistakes: &mut Vec<Mistake>) {
    StyleChecker { is_scoped: false, mistakes }.items(items, StatementContext::Attribute);
}

struct StyleChecker<'m> {
    is_scoped: bool,
    mistakes: &'m mut Vec<Mistake>,
}

/// The context of a statement.
#[derive(Clone, Copy)]
enum StatementContext<'a> {
    Sheet,
    Rule,
    Attribute,
    Keyframes,
    /// A step of an animation.
    Step,
    /// An at-rule that allows only these descriptors, and properties if `properties` is set.
    Descriptors {
        of: &'a AtRule<'a>,
        known: Words,
        properties: bool,
    },
}

/// The content that an at-rule allows.
enum AtRuleContent {
    /// The same content as its context.
    Same,
    Keyframes,
    Descriptors {
        properties: bool,
    },
    /// Content that is not checked.
    Anything,
    /// The rule itself is not allowed, because Bine joins all sheets into one.
    Nowhere(&'static str),
}

impl AtRuleContent {
    fn of(name: &str) -> Self {
        match name {
            "media" | "supports" | "container" | "layer" | "scope" | "starting-style" | "when"
            | "else" => Self::Same,
            "keyframes" => Self::Keyframes,
            "font-face"
            | "property"
            | "counter-style"
            | "font-palette-values"
            | "color-profile"
            | "view-transition" => Self::Descriptors { properties: false },
            "page" | "position-try" => Self::Descriptors { properties: true },
            "import" => Self::Nowhere("name the other file in a `css_file!`"),
            "namespace" => Self::Nowhere("write the names without a prefix"),
            _ => Self::Anything,
        }
    }
}

impl StyleChecker<'_> {
    fn items(&mut self, items: &[Item<'_>], place: StatementContext<'_>) {
        let declarations = || {
            items.iter().filter_map(|item| match item {
                Item::Declaration(declaration) => Some(declaration),
                _ => None,
            })
        };
        let names: Vec<&str> = declarations().map(|declaration| declaration.name.text).collect();
        let mut before: Vec<&Declaration<'_>> = Vec::new();
        for item in items {
            match item {
                Item::Declaration(declaration) => {
                    self.declaration(declaration, &names, place);
                    self.check_duplicate(declaration, &before);
                    before.push(declaration);
                }
                Item::Rule(rule) => self.rule(rule, place),
                Item::At(rule) => self.at_rule(rule, place),
            }
        }
    }

    fn declaration(
        &mut self,
        declaration: &Declaration<'_>,
        names: &[&str],
        place: StatementContext<'_>,
    ) {
        let name = declaration.name.text;
        match place {
            StatementContext::Sheet => {
                let message =
                    format!("a declaration belongs in a rule: `selector {{ {name}: .. }}`");
                self.mistake(&declaration.name, message);
            }
            StatementContext::Keyframes => {
                let message = format!("a declaration belongs in a step: `50% {{ {name}: .. }}`");
                self.mistake(&declaration.name, message);
            }
            StatementContext::Rule | StatementContext::Attribute | StatementContext::Step => {
                value::property(declaration, names, self.mistakes);
            }
            StatementContext::Descriptors { known, properties: true, .. }
                if !known.contains(name) =>
            {
                value::property(declaration, names, self.mistakes);
            }
            StatementContext::Descriptors { of, known, .. } => {
                value::descriptor(of, known, declaration, self.mistakes);
            }
        }
    }

    /// Reports an exact duplicate. A second value for a property is allowed as a fallback for older
    /// browsers.
    fn check_duplicate(&mut self, declaration: &Declaration<'_>, before: &[&Declaration<'_>]) {
        let same = |other: &&&Declaration<'_>| {
            other.name.text.eq_ignore_ascii_case(declaration.name.text)
                && other
                    .value
                    .iter()
                    .map(|piece| piece.text)
                    .eq(declaration.value.iter().map(|piece| piece.text))
        };
        if before.iter().any(|other| same(&other)) {
            let message =
                format!("this block sets the same value for `{}` already", declaration.name.text);
            self.mistake(&declaration.name, message);
        }
    }

    fn rule(&mut self, rule: &Rule<'_>, place: StatementContext<'_>) {
        let first = rule.prelude.first();
        let at = first.map_or(rule.at, |first| first.at);
        match place {
            StatementContext::Sheet | StatementContext::Rule => {
                let is_relative = matches!(place, StatementContext::Rule);
                let context = SelectorContext { is_relative, is_scoped: self.is_scoped };
                selector::list(rule.prelude, context, rule.at, self.mistakes);
                self.items(&rule.block, StatementContext::Rule);
            }
            StatementContext::Keyframes => {
                self.steps(rule);
                self.items(&rule.block, StatementContext::Step);
            }
            StatementContext::Attribute => {
                let message = "a `style` attribute takes only declarations, `name: value;`";
                self.mistakes.push((at, message.to_owned()));
            }
            StatementContext::Step | StatementContext::Descriptors { .. } => {
                let message = "no rule is allowed here, only `name: value;`".to_owned();
                self.mistakes.push((at, message));
            }
        }
    }

    fn steps(&mut self, rule: &Rule<'_>) {
        for step in super::split_at_depth(rule.prelude, ",") {
            let is_step = match step {
                [step] => step.kind == PieceKind::Percentage || step.is("from") || step.is("to"),
                // A step of a named timeline range: `entry 25%`.
                [range, step] => range.is_word() && step.kind == PieceKind::Percentage,
                _ => false,
            };
            if !is_step {
                let at = step.first().map_or(rule.at, |first| first.at);
                let message =
                    "a step of an animation is `from`, `to` or a percentage such as `50%`";
                self.mistakes.push((at, message.to_owned()));
            }
        }
    }

    fn at_rule(&mut self, rule: &AtRule<'_>, place: StatementContext<'_>) {
        let name = rule.name.name().to_ascii_lowercase();
        if name.starts_with('-') {
            return;
        }
        if matches!(
            place,
            StatementContext::Attribute | StatementContext::Keyframes | StatementContext::Step
        ) {
            let message = format!("`@{name}` is not allowed here");
            return self.mistake(&rule.name, message);
        }
        let Some(known) = vocabulary::at_rule(&name) else {
            let names = vocabulary::at_rules().iter().map(|known| known.name);
            let meant = did_you_mean("@", &name, names);
            return self.mistake(&rule.name, format!("CSS has no rule `@{name}`{meant}"));
        };
        prelude::check(rule, self.mistakes);
        let holds = AtRuleContent::of(&name);
        if let AtRuleContent::Nowhere(instead) = holds {
            let message =
                format!("`@{name}` is not allowed, because all sheets are joined: {instead}");
            return self.mistake(&rule.name, message);
        }
        let is_statement =
            ["charset", "layer", "custom-media", "custom-selector", "apply"].contains(&&*name);
        let Some(block) = &rule.block else {
            if !is_statement {
                self.mistake(&rule.name, format!("`@{name}` needs a block, `{{ .. }}`"));
            }
            return;
        };
        match holds {
            AtRuleContent::Same => {
                if name == "scope" {
                    self.scope(rule);
                }
                // Rules nested in `@scope` and similar rules have the context of that rule.
                self.items(block, place);
            }
            AtRuleContent::Keyframes => self.items(block, StatementContext::Keyframes),
            AtRuleContent::Descriptors { properties } => {
                let known = known.descriptors;
                self.items(block, StatementContext::Descriptors { of: rule, known, properties });
            }
            AtRuleContent::Anything | AtRuleContent::Nowhere(_) => {}
        }
    }

    /// Checks `@scope (from) to (to)`, whose parentheses contain selectors.
    fn scope(&mut self, rule: &AtRule<'_>) {
        let context = SelectorContext { is_relative: false, is_scoped: self.is_scoped };
        let mut rest = rule.prelude;
        while let [piece, after @ ..] = rest {
            rest = after;
            if piece.is("(") {
                let (selectors, after) = selector::inside(after);
                selector::list(selectors, context, piece.at, self.mistakes);
                rest = after;
            } else if !piece.is("to") {
                self.mistake(piece, "`@scope` is written `@scope (from) to (to)`");
            }
        }
    }

    fn mistake(&mut self, piece: &Piece<'_>, message: impl Into<String>) {
        self.mistakes.push((piece.at, message.into()));
    }
}
