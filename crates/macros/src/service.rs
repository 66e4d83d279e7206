//! Decides what `#[service]` makes of a function: one of its name that says where it is called, and how.

use crate::endpoint::refuse_path;
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::function::{Argument, Function, Role, spelled};
use crate::item::split_commas;
use crate::literal;
use crate::token::Token;
use crate::who::{WHOM, Who};

/// Expands `#[service(arguments)]` above `item`.
pub(crate) fn service(arguments: &[Token], item: &[Token]) -> Expansion {
    let mut faults = Vec::new();
    let wish = Wish::read(arguments, &mut faults);
    let Some(function) = Function::read(item, Role::Service, &mut faults) else {
        return Expansion { faults, ..Expansion::default() };
    };
    let context = Context::of(&function, &mut faults);
    if wish.is_once && !matches!(context, Context::Call) {
        let message = "only a service that takes `call: &mut Call` is run again: without it there is nothing to say `once` to";
        faults.push(Fault::new(function.name, message));
    }
    let mut emitter = Emitter { expansion: Expansion::default(), krate: wish.krate };
    emitter.service(&function, faults.is_empty().then_some((&wish, context)));
    Expansion { faults, ..emitter.expansion }
}

/// What stands in the attribute.
#[derive(Default)]
struct Wish<'t> {
    path: Option<&'t Token>,
    is_safe: bool,
    is_once: bool,
    who: Option<Who<'t>>,
    krate: Option<&'t [Token]>,
}

const WISHES: &str =
    "a service takes `\"/path\"`, `safe`, `once`, `who = \"user\"` and `crate = path`";

impl<'t> Wish<'t> {
    fn read(arguments: &'t [Token], faults: &mut Vec<Fault>) -> Self {
        let mut wish = Self::default();
        for part in split_commas(arguments) {
            match part {
                [word] if word.is("safe") => wish.is_safe = true,
                [word] if word.is("once") => wish.is_once = true,
                [word, equals, krate @ ..]
                    if word.is("crate") && equals.is("=") && !krate.is_empty() =>
                {
                    wish.krate = Some(krate);
                }
                [word, equals, who @ ..] if word.is("who") && equals.is("=") => {
                    match Who::read(who) {
                        Some(who) => wish.who = Some(who),
                        None => {
                            let message = format!("a service {WHOM}");
                            faults.push(Fault::new(who.first().unwrap_or(word), message));
                        }
                    }
                }
                [path] => match literal::string(path) {
                    None => faults.push(Fault::new(path, WISHES)),
                    Some(Err(fault)) => faults.push(fault),
                    Some(Ok(text)) => {
                        faults.extend(
                            refuse_path(path, &text).or_else(|| refuse_braces(path, &text)),
                        );
                        wish.path = Some(path);
                    }
                },
                [first, ..] => faults.push(Fault::new(first, WISHES)),
                [] => {}
            }
        }
        wish
    }
}

fn refuse_braces(token: &Token, path: &str) -> Option<Fault> {
    let message = "the path of a service has no parameters: what it takes comes with the call";
    path.contains(['{', '}']).then(|| Fault::new(token, message))
}

/// What a service is given beside its own arguments, as the first of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    Nothing,
    /// `&mut Call`: it is a transaction.
    Call,
    /// Who calls, and what the program has.
    Caller,
}

impl Context {
    fn of(function: &Function<'_>, faults: &mut Vec<Fault>) -> Self {
        let mut context = Self::Nothing;
        for (place, Argument { kind, .. }) in function.arguments.iter().enumerate() {
            let Some(last) = kind.last().filter(|last| last.is("Call") || last.is("Caller")) else {
                continue;
            };
            let is_borrowed =
                matches!(kind, [and, mutable, ..] if and.is("&") && mutable.is("mut"));
            let message = match () {
                () if place > 0 => "who calls comes first",
                () if last.is("Caller") && kind[0].is("&") => {
                    "a caller is given away: `caller: Caller`"
                }
                () if last.is("Caller") => {
                    context = Self::Caller;
                    continue;
                }
                () if function.is_async => {
                    "an async service is no transaction: it takes `caller: Caller`, and changes tables by `caller.store().change(..)`"
                }
                () if !is_borrowed => "a call is borrowed: `call: &mut Call`",
                () => {
                    context = Self::Call;
                    continue;
                }
            };
            faults.push(Fault::new(last, message));
        }
        context
    }
}

struct Emitter<'t> {
    expansion: Expansion,
    krate: Option<&'t [Token]>,
}

impl Emitter<'_> {
    /// Without a wish there were faults: then the function is there, for those who name it, and does nothing.
    fn service(&mut self, function: &Function<'_>, sound: Option<(&Wish<'_>, Context)>) {
        self.expansion.run(&function.shared_attributes);
        self.expansion.run(function.visibility);
        // A function, not a value: a name bound elsewhere in the program may be the service's own.
        self.code("fn");
        self.expansion.run(std::slice::from_ref(function.name));
        self.code("() ->");
        self.private("Service<(");
        let own = match sound {
            Some((_, Context::Nothing)) | None => &function.arguments[..],
            Some(_) => &function.arguments[1..],
        };
        for Argument { kind, .. } in own {
            self.expansion.run(kind);
            self.code(", ");
        }
        self.code("), ");
        let Answer { kind, may_fail } = Answer::of(function.answer);
        if kind.is_empty() {
            self.code("()");
        } else if kind.iter().any(|token| token.is("impl")) {
            // It has no name that could stand here.
            self.private("Response");
        } else {
            self.expansion.run(kind);
        }
        self.code("> {");
        match sound {
            Some((wish, context)) => {
                self.signature(function, wish, context, own);
                self.run(function, context, own, may_fail);
            }
            None => self.code("::core::unreachable!()"),
        }
        self.code("}");
    }

    /// Where it is called and what it takes, in front of what runs then.
    fn signature(
        &mut self,
        function: &Function<'_>,
        wish: &Wish<'_>,
        context: Context,
        own: &[Argument<'_>],
    ) {
        // `async` says where the function runs, awaits or not; arguments are given away, and an answer may be sure.
        self.code(
            "#[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]",
        );
        self.expansion.run(&function.own_attributes);
        self.expansion.run(function.whole);
        self.private("Service::new(&");
        self.private("Signature { name: ::core::concat!(::core::module_path!(), ");
        self.expansion.string(&format!("::{}", function.plain_name()));
        self.code("), path: ::core::option::Option::");
        match wish.path {
            Some(path) => {
                self.code("Some(");
                self.expansion.run(std::slice::from_ref(path));
                self.code(")");
            }
            None => self.code("None"),
        }
        self.code(", arguments: &[");
        for Argument { name, kind } in own {
            self.code("(");
            self.expansion.string(name);
            self.code(", ");
            self.expansion.string(&spelled(kind));
            self.code("), ");
        }
        self.code("], rule: ::core::option::Option::");
        if let Some(who) = wish.who {
            self.code("Some(");
            match who {
                Who::Anyone => self.private("Rule::ANYONE"),
                Who::Users => self.private("Rule::USERS"),
                Who::Rule(path) => drop(self.expansion.run(path)),
            }
            self.code(")");
        } else {
            self.code("None");
        }
        let (is_safe, is_once) = (wish.is_safe, wish.is_once);
        let knows_caller = context != Context::Nothing;
        self.code(&format!(
            ", is_safe: {is_safe}, is_once: {is_once}, knows_caller: {knows_caller} }}, "
        ));
    }

    fn run(
        &mut self,
        function: &Function<'_>,
        context: Context,
        own: &[Argument<'_>],
        may_fail: bool,
    ) {
        self.code("|signature| signature.");
        self.code(match context {
            Context::Call => "changing",
            _ if function.is_async => "awaiting",
            _ => "answering",
        });
        self.code("(|__context, (");
        self.names(own);
        self.code("): (");
        for Argument { kind, .. } in own {
            self.expansion.run(kind);
            self.code(", ");
        }
        self.code(")| ");
        if function.is_async {
            self.code("async move { ");
        }
        if !may_fail {
            self.code("::core::result::Result::Ok::<_, ");
            self.private("Error>(");
        }
        self.expansion.run(std::slice::from_ref(function.name));
        self.code("(");
        if context != Context::Nothing {
            self.code("__context, ");
        }
        self.names(own);
        self.code(if function.is_async { ").await" } else { ")" });
        self.code(if may_fail { "" } else { ")" });
        self.code(if function.is_async { " }))" } else { "))" });
    }

    fn names(&mut self, own: &[Argument<'_>]) {
        for place in 0..own.len() {
            self.code(&format!("__a{place}, "));
        }
    }

    /// Names something of the front door that only macros use.
    fn private(&mut self, name: &str) {
        match self.krate {
            Some(krate) => {
                self.expansion.run(krate);
            }
            None => self.code(" ::bine"),
        }
        self.code("::__private::");
        self.code(name);
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

/// What a service answers, as far as its declaration says it.
struct Answer<'t> {
    /// The type of its value; empty for none.
    kind: &'t [Token],
    may_fail: bool,
}

impl<'t> Answer<'t> {
    fn of(kind: &'t [Token]) -> Self {
        let angle = kind.iter().position(|token| token.is("<")).unwrap_or(kind.len());
        if !kind[..angle].last().is_some_and(|name| name.is("Result")) {
            return Self { kind, may_fail: false };
        }
        let inside = kind.get(angle + 1..kind.len() - 1).unwrap_or_default();
        Self { kind: split_commas(inside).first().copied().unwrap_or_default(), may_fail: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use crate::token::Delimiter;

    /// The arguments in parentheses, then the item.
    fn expand(source: &str) -> (Sample, Expansion) {
        let sample = Sample::new(source);
        let (arguments, item) = sample.tokens.split_first().expect("arguments");
        let expansion =
            service(arguments.group(Delimiter::Parenthesis).expect("parentheses"), item);
        (sample, expansion)
    }

    #[track_caller]
    fn check_fault(source: &str, expected: &str) {
        let (sample, expansion) = expand(source);
        assert_eq!(sample.tell(&expansion.faults), expected);
    }

    /// White space aside.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let (sample, expansion) = expand(source);
        assert_eq!(sample.tell(&expansion.faults), "");
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeeze(&sample.spell(&expansion)), squeeze(expected));
    }

    #[test]
    fn a_function_with_a_call_becomes_a_transaction() {
        check(
            "() #[doc = \"Posts.\"] pub fn post(call: &mut Call, body: Map<A, &'static B>) -> Result<Id<M>, Error> { x }",
            "#[doc = \"Posts.\"] pub fn post() -> ::bine::__private::Service<(Map<A, &'static B>, ), Id<M> > {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]
                fn post(call: &mut Call, body: Map<A, &'static B>) -> Result<Id<M>, Error> { x }
                ::bine::__private::Service::new(&::bine::__private::Signature {
                    name: ::core::concat!(::core::module_path!(), \"::post\"), path: ::core::option::Option::None,
                    arguments: &[(\"body\", \"Map<A, &'static B>\"), ],
                    rule: ::core::option::Option::None, is_safe: false, is_once: false, knows_caller: true },
                    |signature| signature.changing(|__context, (__a0, ): (Map<A, &'static B>, )| post(__context, __a0, )))
            }",
        );
    }

    #[test]
    fn what_is_written_above_a_service_is_said_of_it() {
        check(
            "(\"/p\", safe, who = \"user\", crate = crate) async fn all(caller: Caller) -> impl Page {}",
            "fn all() -> crate::__private::Service<(), crate::__private::Response> {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]
                async fn all(caller: Caller) -> impl Page {}
                crate::__private::Service::new(&crate::__private::Signature {
                    name: ::core::concat!(::core::module_path!(), \"::all\"), path: ::core::option::Option::Some(\"/p\"),
                    arguments: &[], rule: ::core::option::Option::Some(crate::__private::Rule::USERS),
                    is_safe: true, is_once: false, knows_caller: true },
                    |signature| signature.awaiting(|__context, (): ()| async move {
                        ::core::result::Result::Ok::<_, crate::__private::Error>(all(__context, ).await) }))
            }",
        );
    }

    #[test]
    fn a_function_alone_has_its_answer_at_once() {
        let (sample, expansion) = expand("() fn add(one: i32, mut r#type: i32) {}");
        let spelled = sample.spell(&expansion);
        assert!(spelled.contains("Service<( i32 ,  i32 , ), ()>"), "{spelled}");
        let run = "answering(|__context, (__a0, __a1, ): ( i32 ,  i32 , )| ::core::result::Result::Ok::<_,  ::bine::__private::Error>( add (__a0, __a1, )))";
        assert!(spelled.contains(run), "{spelled}");
    }

    #[test]
    fn an_attribute_is_one_that_a_service_has() {
        for wrong in ["fast", "who", "path = 1", "1 2"] {
            let first = wrong.split(' ').next().unwrap();
            check_fault(&format!("({wrong}) fn a() {{}}"), &format!("{first}: {WISHES}"));
        }
        check_fault("(who = \"admin\") fn a() {}", &format!("\"admin\": a service {WHOM}"));
        check_fault("(who =) fn a() {}", &format!("who: a service {WHOM}"));
        check_fault("(\"a\") fn a() {}", "\"a\": a path starts with `/`");
        check_fault(
            "(\"/{a}\") fn a() {}",
            "\"/{a}\": the path of a service has no parameters: what it takes comes with the call",
        );
        check_fault(
            "(once) fn a() {}",
            "a: only a service that takes `call: &mut Call` is run again: without it there is nothing to say `once` to",
        );
    }

    #[test]
    fn who_calls_comes_first_and_as_it_must() {
        check_fault("() fn a(x: u8, call: &mut Call) {}", "Call: who calls comes first");
        check_fault("() fn a(call: Call) {}", "Call: a call is borrowed: `call: &mut Call`");
        check_fault(
            "() fn a(caller: &Caller) {}",
            "Caller: a caller is given away: `caller: Caller`",
        );
        check_fault(
            "() async fn a(call: &mut Call) {}",
            "Call: an async service is no transaction: it takes `caller: Caller`, and changes tables by `caller.store().change(..)`",
        );
    }

    #[test]
    fn only_a_plain_function_is_a_service() {
        check_fault(
            "() struct A;",
            "struct: a service is a function: `async fn name(..)` or `fn name(..)`",
        );
        check_fault(
            "() fn a<T>(x: T) {}",
            "<: a service cannot be generic: nobody calls it with types",
        );
        check_fault(
            "() fn a(&self) {}",
            "self: a service is no method: it takes everything from the call",
        );
        check_fault(
            "() fn a(Query(x): Query<u8>) {}",
            "Query: an argument of a service is a name and a type: `name: Text`",
        );
    }
}
