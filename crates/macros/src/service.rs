//! `#[service]`: a function becomes a function of the same name that returns its service.

use crate::access::{ACCESS_FORMS, Access};
use crate::endpoint::reject_path;
use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::function::{Argument, Function, Role, spelled};
use crate::item::split_commas;
use crate::literal;
use crate::locals;
use crate::reads;
use crate::stored;
use crate::token::{Token, flatten};

/// Expands `#[service(arguments)]` on `item`.
pub(crate) fn service(arguments: &[Token], item: &[Token]) -> Expansion {
    let mut faults = Vec::new();
    let options = ServiceOptions::read(arguments, &mut faults);
    let Some(function) = Function::read(item, Role::Service, &mut faults) else {
        return Expansion { faults, ..Expansion::default() };
    };
    let context = ContextArgument::of(&function, &mut faults);
    if options.is_once && !matches!(context, ContextArgument::Call) {
        let message = "`once` needs an argument `call: &mut Call`: only transactions are retried";
        faults.push(Fault::new(function.name, message));
    }
    let mut emitter = ServiceEmitter { expansion: Expansion::default(), krate: options.krate };
    emitter.service(&function, faults.is_empty().then_some((&options, context)));
    Expansion { faults, ..emitter.expansion }
}

/// The options of the attribute.
#[derive(Default)]
struct ServiceOptions<'t> {
    path: Option<&'t Token>,
    is_safe: bool,
    is_once: bool,
    access: Option<Access<'t>>,
    krate: Option<&'t [Token]>,
}

const OPTIONS: &str =
    "a service takes `\"/path\"`, `safe`, `once`, `who = \"user\"` and `crate = path`";

impl<'t> ServiceOptions<'t> {
    fn read(arguments: &'t [Token], faults: &mut Vec<Fault>) -> Self {
        let mut options = Self::default();
        for part in split_commas(arguments) {
            match part {
                [word] if word.is("safe") => options.is_safe = true,
                [word] if word.is("once") => options.is_once = true,
                [word, equals, krate @ ..]
                    if word.is("crate") && equals.is("=") && !krate.is_empty() =>
                {
                    options.krate = Some(krate);
                }
                [word, equals, who @ ..] if word.is("who") && equals.is("=") => {
                    match Access::read(who) {
                        Some(who) => options.access = Some(who),
                        None => {
                            let message = format!("a service {ACCESS_FORMS}");
                            faults.push(Fault::new(who.first().unwrap_or(word), message));
                        }
                    }
                }
                [path] => match literal::string(path) {
                    None => faults.push(Fault::new(path, OPTIONS)),
                    Some(Err(fault)) => faults.push(fault),
                    Some(Ok(text)) => {
                        faults.extend(
                            reject_path(path, &text).or_else(|| reject_braces(path, &text)),
                        );
                        options.path = Some(path);
                    }
                },
                [first, ..] => faults.push(Fault::new(first, OPTIONS)),
                [] => {}
            }
        }
        options
    }
}

fn reject_braces(token: &Token, path: &str) -> Option<Fault> {
    let message = "the path of a service has no parameters: its arguments come with the call";
    path.contains(['{', '}']).then(|| Fault::new(token, message))
}

/// The context argument of a service, which precedes its own arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ContextArgument {
    Nothing,
    /// `&mut Call`: the service is a transaction.
    Call,
    /// `Caller`: the client's session and the program's state.
    Caller,
}

impl ContextArgument {
    fn of(function: &Function<'_>, faults: &mut Vec<Fault>) -> Self {
        let mut context = Self::Nothing;
        for (place, Argument { kind, .. }) in function.arguments.iter().enumerate() {
            let Some(last) = kind.last().filter(|last| last.is("Call") || last.is("Caller")) else {
                faults.extend(reject_reference(kind));
                continue;
            };
            let is_borrowed =
                matches!(kind, [and, mutable, ..] if and.is("&") && mutable.is("mut"));
            let message = match () {
                () if place > 0 => "the call or the caller is the first argument",
                () if last.is("Caller") && kind[0].is("&") => {
                    "a caller is passed by value: `caller: Caller`"
                }
                () if last.is("Caller") => {
                    context = Self::Caller;
                    continue;
                }
                () if function.is_async => {
                    "an async service is not a transaction: take `caller: Caller`, and change tables with `caller.store().change(..)`"
                }
                () if !is_borrowed => "a call is passed by reference: `call: &mut Call`",
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

/// Rejects a type with a reference: an argument is read from the request, which ends before.
fn reject_reference(kind: &[Token]) -> Option<Fault> {
    let message = "an argument of a service owns its value: `Text` instead of `&str`, `Vec<T>` instead of `&[T]`";
    flatten(kind).iter().find(|token| token.is("&")).map(|token| Fault::new(token, message))
}

struct ServiceEmitter<'t> {
    expansion: Expansion,
    krate: Option<&'t [Token]>,
}

impl ServiceEmitter<'_> {
    /// Emits the function. Without options, which means that there were faults, its body is
    /// unreachable.
    fn service(
        &mut self,
        function: &Function<'_>,
        valid: Option<(&ServiceOptions<'_>, ContextArgument)>,
    ) {
        self.expansion.run(&function.shared_attributes);
        self.expansion.run(function.visibility);
        // A function rather than a value: elsewhere a local binding may have the service's name.
        self.code("fn");
        self.expansion.run(std::slice::from_ref(function.name));
        self.code("() ->");
        self.private("Service<(");
        let own = match valid {
            Some((_, ContextArgument::Nothing)) | None => &function.arguments[..],
            Some(_) => &function.arguments[1..],
        };
        // A reference, which was rejected, would need a lifetime here.
        for Argument { kind, .. } in own.iter().filter(|own| reject_reference(own.kind).is_none()) {
            self.expansion.run(kind);
            self.code(", ");
        }
        self.code("), ");
        let Answer { kind, may_fail } = Answer::of(function.return_type);
        if kind.is_empty() {
            self.code("()");
        } else if kind.iter().any(|token| token.is("impl")) {
            // An `impl Trait` type cannot be named here.
            self.private("Response");
        } else {
            self.expansion.run(kind);
        }
        self.code("> {");
        match valid {
            Some((options, context)) => {
                self.signature(function, options, context, own);
                self.run(function, context, own, may_fail);
            }
            None => self.code("::core::unreachable!()"),
        }
        self.code("}");
    }

    /// Emits the signature: path, arguments and access rule.
    fn signature(
        &mut self,
        function: &Function<'_>,
        options: &ServiceOptions<'_>,
        context: ContextArgument,
        own: &[Argument<'_>],
    ) {
        // `async` selects where the function runs, even without an await. Arguments are always
        // moved, and a service may return a `Result` that is never an error.
        self.code(
            "#[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]",
        );
        self.expansion.run(&function.own_attributes);
        self.expansion.run(function.whole);
        reads::register(function.whole, self.krate, &mut self.expansion);
        locals::register(function.whole, self.krate, &mut self.expansion);
        self.code("static __SIGNATURE:");
        self.private("Signature =");
        self.private("Signature { name: ::core::concat!(::core::module_path!(), ");
        self.expansion.string(&format!("::{}", function.plain_name()));
        self.code("), path: ::core::option::Option::");
        match options.path {
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
        self.code("], answer:");
        self.answer(function);
        self.code(", rule: ::core::option::Option::");
        if let Some(who) = options.access {
            self.code("Some(");
            match who {
                Access::Anyone => self.private("Rule::ANYONE"),
                Access::Users => self.private("Rule::USERS"),
                Access::Rule(path) => drop(self.expansion.run(path)),
            }
            self.code(")");
        } else {
            self.code("None");
        }
        let (is_safe, is_once) = (options.is_safe, options.is_once);
        let knows_caller = context != ContextArgument::Nothing;
        self.code(&format!(
            ", is_safe: {is_safe}, is_once: {is_once}, knows_caller: {knows_caller}, is_known:"
        ));
        self.private("AtomicBool::new(false), limits:");
        self.private("ArgumentLimits::new(");
        let krate = self.krate;
        stored::emit(function, &mut self.expansion, &|to, name| private(krate, to, name));
        self.code(") };");
        self.private("Service::new(&__SIGNATURE, ");
    }

    /// Emits the type of the answer, and the function that finds its shape.
    fn answer(&mut self, function: &Function<'_>) {
        let kind = Answer::of(function.return_type).kind;
        let is_unnamed = kind.iter().any(|token| token.is("impl"));
        self.code("(");
        self.expansion.string(&if is_unnamed { "Response".to_owned() } else { spelled(kind) });
        // A block, since the traits of the probe would change what methods of the service mean.
        self.code(", || { use");
        self.private("{DescribedAnswer as _, OpaqueAnswer as _}; (&");
        self.private("AnswerProbe::<");
        if kind.is_empty() {
            self.code("()");
        } else if is_unnamed {
            self.private("Response");
        } else {
            self.expansion.run(kind);
        }
        self.code(">::new()).describe() })");
    }

    fn run(
        &mut self,
        function: &Function<'_>,
        context: ContextArgument,
        own: &[Argument<'_>],
        may_fail: bool,
    ) {
        self.code("|signature| signature.");
        self.code(match context {
            ContextArgument::Call => "changing",
            _ if function.is_async => "awaiting",
            _ => "answering",
        });
        self.read(own);
        self.code(", |__context, (");
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
        if context != ContextArgument::Nothing {
            self.code("__context, ");
        }
        self.names(own);
        self.code(if function.is_async { ").await" } else { ")" });
        self.code(if may_fail { "" } else { ")" });
        self.code(if function.is_async { " }))" } else { "))" });
    }

    /// Emits the function that reads the arguments. It names each type on its own, so that the
    /// compiler reports a wrong one there. All are read before the first wrong one ends the call,
    /// since the client learns about all.
    fn read(&mut self, own: &[Argument<'_>]) {
        self.code("(|__reader| { ");
        for (place, Argument { kind, .. }) in own.iter().enumerate() {
            self.code(&format!("let __a{place} = <"));
            self.expansion.run(kind);
            self.code("as");
            self.private("ServiceArgument>::take(__reader); ");
        }
        self.code("::core::option::Option::Some((");
        for place in 0..own.len() {
            self.code(&format!("__a{place}?, "));
        }
        self.code(")) }");
    }

    fn names(&mut self, own: &[Argument<'_>]) {
        for place in 0..own.len() {
            self.code(&format!("__a{place}, "));
        }
    }

    /// Emits the path of an item that only macros use.
    fn private(&mut self, name: &str) {
        private(self.krate, &mut self.expansion, name);
    }

    fn code(&mut self, code: &str) {
        self.expansion.code(code);
    }
}

fn private(krate: Option<&[Token]>, to: &mut Expansion, name: &str) {
    match krate {
        Some(krate) => {
            to.run(krate);
        }
        None => to.code(" ::bine"),
    }
    to.code("::__private::");
    to.code(name);
}

/// The return type of a service.
struct Answer<'t> {
    /// The type of the value; empty for no value.
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

    /// Expands a source that starts with the attribute's arguments in parentheses.
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
        assert_eq!(sample.report(&expansion.faults), expected);
    }

    /// Compares without white space.
    #[track_caller]
    fn check(source: &str, expected: &str) {
        let (sample, expansion) = expand(source);
        assert_eq!(sample.report(&expansion.faults), "");
        let squeeze = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(squeeze(&sample.spell(&expansion)), squeeze(expected));
    }

    #[test]
    fn function_with_a_call_becomes_a_transaction() {
        check(
            "() #[doc = \"Posts.\"] pub fn post(call: &mut Call, body: Map<A, Cow<'static, B>>) -> Result<Id<M>, Error> { x }",
            "#[doc = \"Posts.\"] pub fn post() -> ::bine::__private::Service<(Map<A, Cow<'static, B>>, ), Id<M> > {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]
                fn post(call: &mut Call, body: Map<A, Cow<'static, B>>) -> Result<Id<M>, Error> { x }
                static __SIGNATURE: ::bine::__private::Signature = ::bine::__private::Signature {
                    name: ::core::concat!(::core::module_path!(), \"::post\"), path: ::core::option::Option::None,
                    arguments: &[(\"body\", \"Map<A, Cow<'static, B>>\"), ],
                    answer: (\"Id<M>\", || { use ::bine::__private::{DescribedAnswer as _, OpaqueAnswer as _};
                        (& ::bine::__private::AnswerProbe::<Id<M>>::new()).describe() }),
                    rule: ::core::option::Option::None, is_safe: false, is_once: false, knows_caller: true,
                    is_known: ::bine::__private::AtomicBool::new(false),
                    limits: ::bine::__private::ArgumentLimits::new(&[]) };
                    ::bine::__private::Service::new(&__SIGNATURE,
                    |signature| signature.changing(|__reader| {
                        let __a0 = <Map<A, Cow<'static, B>> as ::bine::__private::ServiceArgument>::take(__reader);
                        ::core::option::Option::Some((__a0?, )) }, |__context, (__a0, ): (Map<A, Cow<'static, B>>, )| post(__context, __a0, )))
            }",
        );
    }

    #[test]
    fn applies_the_options_of_a_service() {
        check(
            "(\"/p\", safe, who = \"user\", crate = crate) async fn all(caller: Caller) -> impl Page {}",
            "fn all() -> crate::__private::Service<(), crate::__private::Response> {
                #[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::unnecessary_wraps)]
                async fn all(caller: Caller) -> impl Page {}
                static __SIGNATURE: crate::__private::Signature = crate::__private::Signature {
                    name: ::core::concat!(::core::module_path!(), \"::all\"), path: ::core::option::Option::Some(\"/p\"),
                    arguments: &[],
                    answer: (\"Response\", || { use crate::__private::{DescribedAnswer as _, OpaqueAnswer as _};
                        (& crate::__private::AnswerProbe::<crate::__private::Response>::new()).describe() }),
                    rule: ::core::option::Option::Some(crate::__private::Rule::USERS),
                    is_safe: true, is_once: false, knows_caller: true,
                    is_known: crate::__private::AtomicBool::new(false),
                    limits: crate::__private::ArgumentLimits::new(&[]) };
                    crate::__private::Service::new(&__SIGNATURE,
                    |signature| signature.awaiting(|__reader| { ::core::option::Option::Some(()) }, |__context, (): ()| async move {
                        ::core::result::Result::Ok::<_, crate::__private::Error>(all(__context, ).await) }))
            }",
        );
    }

    #[test]
    fn function_without_context_answers_directly() {
        let (sample, expansion) = expand("() fn add(one: i32, mut r#type: i32) {}");
        let spelled = sample.spell(&expansion);
        assert!(spelled.contains("Service<( i32 ,  i32 , ), ()>"), "{spelled}");
        let run = "|__context, (__a0, __a1, ): ( i32 ,  i32 , )| ::core::result::Result::Ok::<_,  ::bine::__private::Error>( add (__a0, __a1, )))";
        assert!(spelled.contains(run), "{spelled}");
    }

    #[test]
    fn rejects_unknown_service_options() {
        for wrong in ["fast", "who", "path = 1", "1 2"] {
            let first = wrong.split(' ').next().unwrap();
            check_fault(&format!("({wrong}) fn a() {{}}"), &format!("{first}: {OPTIONS}"));
        }
        check_fault("(who = \"admin\") fn a() {}", &format!("\"admin\": a service {ACCESS_FORMS}"));
        check_fault("(who =) fn a() {}", &format!("who: a service {ACCESS_FORMS}"));
        check_fault("(\"a\") fn a() {}", "\"a\": a path starts with `/`");
        check_fault(
            "(\"/{a}\") fn a() {}",
            "\"/{a}\": the path of a service has no parameters: its arguments come with the call",
        );
        check_fault(
            "(once) fn a() {}",
            "a: `once` needs an argument `call: &mut Call`: only transactions are retried",
        );
    }

    #[test]
    fn checks_the_context_argument() {
        check_fault(
            "() fn a(x: u8, call: &mut Call) {}",
            "Call: the call or the caller is the first argument",
        );
        check_fault(
            "() fn a(call: Call) {}",
            "Call: a call is passed by reference: `call: &mut Call`",
        );
        check_fault(
            "() fn a(caller: &Caller) {}",
            "Caller: a caller is passed by value: `caller: Caller`",
        );
        check_fault(
            "() async fn a(call: &mut Call) {}",
            "Call: an async service is not a transaction: take `caller: Caller`, and change tables with `caller.store().change(..)`",
        );
    }

    #[test]
    fn rejects_references_as_arguments() {
        let owned = "an argument of a service owns its value: `Text` instead of `&str`, `Vec<T>` instead of `&[T]`";
        for kind in ["&str", "&mut u8", "Option<&'static str>", "(u8, &[u8])", "Vec<(u8, &str)>"] {
            check_fault(&format!("() fn a(x: {kind}) {{}}"), &format!("&: {owned}"));
            check_fault(
                &format!("() fn a(call: &mut Call, x: {kind}) {{}}"),
                &format!("&: {owned}"),
            );
        }
    }

    #[test]
    fn rejects_items_other_than_plain_functions() {
        check_fault(
            "() struct A;",
            "struct: a service is a function: `async fn name(..)` or `fn name(..)`",
        );
        check_fault("() fn a<T>(x: T) {}", "<: a service cannot be generic");
        check_fault(
            "() fn a(&self) {}",
            "self: a service cannot take `self`: its arguments come from the call",
        );
        check_fault(
            "() fn a(Query(x): Query<u8>) {}",
            "Query: an argument of a service has a name and a type: `name: Text`",
        );
    }
}
