//! `#[page("/path")]`: a function becomes a function of the same name that returns its route.

use crate::expansion::Expansion;
use crate::fault::Fault;
use crate::function::{Function, Role, spelled};
use crate::literal;
use crate::locals;
use crate::reads;
use crate::several_pages;
use crate::token::Token;

/// Expands `#[page(arguments)]` on `item`.
pub(crate) fn page(arguments: &[Token], item: &[Token]) -> Expansion {
    let mut faults = Vec::new();
    let (methods, arguments) = read_methods(arguments, &mut faults);
    let (path, krate) = read_arguments(arguments, &mut faults);
    let Some(function) = Function::read(item, Role::Page, &mut faults) else {
        return Expansion { faults, ..Expansion::default() };
    };
    if let Some(path) = path.filter(|_| faults.is_empty()) {
        check_parameters(path, &function, &mut faults);
    }
    let mut emitter = RouteEmitter { expansion: Expansion::default(), krate };
    emitter.endpoint(&function, path.filter(|_| faults.is_empty()).map(|path| (methods, path)));
    Expansion { faults, ..emitter.expansion }
}

/// The methods that a page may handle; GET includes HEAD.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "QUERY", "OPTIONS"];

/// Parses `POST`, `GET | POST` or `*` before the path, GET by default. Returns the methods and the
/// rest.
fn read_methods<'t>(
    arguments: &'t [Token],
    faults: &mut Vec<Fault>,
) -> (Vec<&'static str>, &'t [Token]) {
    if let [star, rest @ ..] = arguments
        && star.is("*")
    {
        return (vec!["ALL"], rest);
    }
    let mut methods = Vec::new();
    let mut rest = arguments;
    while let [word, after @ ..] = rest
        && word.is_word()
        && word.text.bytes().all(|byte| byte.is_ascii_uppercase())
    {
        match METHODS.iter().find(|method| word.is(method)) {
            Some(method) => methods.push(*method),
            None => faults.push(Fault::new(
                word,
                format!("unknown method {}: use one of {}, or `*`", word.text, METHODS.join(", ")),
            )),
        }
        rest = match after {
            [bar, after @ ..] if bar.is("|") => after,
            after => after,
        };
    }
    if methods.is_empty() {
        methods.push("GET");
    }
    (methods, rest)
}

/// Checks that each `{name}` of the path is an argument, and that each path argument is in the
/// path.
fn check_parameters(path: &Token, function: &Function<'_>, faults: &mut Vec<Fault>) {
    let Some(Ok(text)) = literal::string(path) else { return };
    let mut parameters = Vec::new();
    for segment in text.split('/').filter(|segment| segment.contains(['{', '}'])) {
        let inner = segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}'));
        let name = inner.map(|inner| inner.strip_suffix("..").unwrap_or(inner)).unwrap_or_default();
        if name.is_empty() || name.contains(['{', '}', '.']) {
            let message = format!(
                "`{segment}` is not a parameter: `{{name}}` matches a whole segment, `{{name..}}` the rest of the path"
            );
            faults.push(Fault::new(path, message));
            return;
        }
        if !function.arguments.iter().any(|argument| argument.name == name) {
            let message = format!("no argument takes `{{{name}}}`: add `{name}: Path<Text>`");
            faults.push(Fault::new(path, message));
        }
        parameters.push(name.to_owned());
    }
    for argument in &function.arguments {
        let is_path = argument.kind.first().filter(|word| word.is("Path"));
        if let Some(word) = is_path.filter(|_| !parameters.contains(&argument.name)) {
            let message = format!("the path has no `{{{}}}` for this", argument.name);
            faults.push(Fault::new(word, message));
        }
    }
}

/// Parses `"/path"`, optionally followed by `crate = path`.
fn read_arguments<'t>(
    arguments: &'t [Token],
    faults: &mut Vec<Fault>,
) -> (Option<&'t Token>, Option<&'t [Token]>) {
    let wants_path = "a page has a path: `#[page(\"/path\")]`";
    let Some((first, rest)) = arguments.split_first() else {
        faults.push(Fault { origin: Fault::WHOLE, message: wants_path.into() });
        return (None, None);
    };
    let mistake = match literal::string(first) {
        None => Some(Fault::new(first, wants_path)),
        Some(path) => path.map_or_else(Some, |path| reject_path(first, &path)),
    };
    faults.extend(mistake);
    let krate = match rest {
        [] => None,
        [comma] if comma.is(",") => None,
        [comma, word, equals, krate @ ..]
            if comma.is(",") && word.is("crate") && equals.is("=") && !krate.is_empty() =>
        {
            Some(krate)
        }
        [unknown, ..] => {
            let unknown = rest.get(1).filter(|_| unknown.is(",")).unwrap_or(unknown);
            faults.push(Fault::new(unknown, "after the path only `crate = path` may follow"));
            None
        }
    };
    (Some(first), krate)
}

pub(crate) fn reject_path(token: &Token, path: &str) -> Option<Fault> {
    if !path.starts_with('/') {
        return Some(Fault::new(token, "a path starts with `/`"));
    }
    let wrong = path
        .chars()
        .find(|&letter| "?#".contains(letter) || letter.is_whitespace() || letter.is_control())?;
    let message = match wrong {
        '?' => "a path has no query: use an argument of the function".into(),
        '#' => "a path has no fragment: it never reaches a server".into(),
        _ => format!("a path has no {wrong:?}"),
    };
    Some(Fault::new(token, message))
}

struct RouteEmitter<'t> {
    expansion: Expansion,
    krate: Option<&'t [Token]>,
}

impl RouteEmitter<'_> {
    /// Emits the function. Without a path, which means that there were faults, its body is
    /// unreachable.
    fn endpoint(&mut self, function: &Function<'_>, place: Option<(Vec<&'static str>, &Token)>) {
        self.expansion.run(&function.shared_attributes);
        self.expansion.run(function.visibility);
        // A function rather than a value: elsewhere a local binding may have the page's name.
        self.code("fn");
        self.expansion.run(std::slice::from_ref(function.name));
        self.code("() ->");
        self.private("Route {");
        match place {
            Some((methods, path)) => self.route(function, &methods, path),
            None => self.code("::core::unreachable!()"),
        }
        self.code("}");
    }

    fn route(&mut self, function: &Function<'_>, methods: &[&'static str], path: &Token) {
        // `async` selects where the function runs, even without an await. Arguments are always
        // moved.
        self.code("#[allow(clippy::unused_async, clippy::needless_pass_by_value)]");
        self.expansion.run(&function.own_attributes);
        let krate = self.krate;
        several_pages::emit(function, &mut self.expansion, &|to, name| private(krate, to, name));
        reads::register(function.whole, self.krate, &mut self.expansion);
        locals::register(function.whole, self.krate, &mut self.expansion);
        self.private("Route::");
        self.code(if function.is_async { "future(" } else { "blocking(" });
        for (place, method) in methods.iter().enumerate() {
            if place > 0 {
                self.code(".or(");
            }
            self.private("Methods::");
            self.code(method);
            if place > 0 {
                self.code(")");
            }
        }
        self.code(", ");
        self.expansion.run(std::slice::from_ref(path));
        let name = function.plain_name();
        self.code(", ::core::concat!(::core::module_path!(), ");
        self.expansion.string(&format!("::{name}"));
        self.code(if function.arguments.is_empty() { "), |_: &mut" } else { "), |request: &mut" });
        self.private("RequestParts<'_>| { ::core::result::Result::Ok(");
        self.expansion.run(std::slice::from_ref(function.name));
        self.code("(");
        for argument in &function.arguments {
            self.code("<");
            self.expansion.run(argument.kind);
            self.code("as");
            self.private("FromRequest>::from_request(request, ");
            self.expansion.string(&argument.name);
            self.code(")?, ");
        }
        self.code(")) })");
        if function.arguments.is_empty() {
            return;
        }
        self.code(".taking(&[");
        for argument in &function.arguments {
            self.code("(");
            self.expansion.string(&argument.name);
            self.code(", ");
            self.expansion.string(&spelled(argument.kind));
            self.code("), ");
        }
        self.code("]).needing(&[");
        for argument in &function.arguments {
            self.code("<");
            self.expansion.run(argument.kind);
            self.code("as");
            self.private("FromRequest>::needs, ");
        }
        self.code("])");
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
        Some(krate) => drop(to.run(krate)),
        None => to.code(" ::bine"),
    }
    to.code("::__private::");
    to.code(name);
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
        let expansion = page(arguments.group(Delimiter::Parenthesis).expect("parentheses"), item);
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
    fn async_function_becomes_a_future_route() {
        check(
            "(\"/hello\") #[doc = \"Greets.\"] #[inline] pub async fn hello(Query(name): Query<Text>, r#type: Map<A, B>) \
             -> impl Page { body }",
            "#[doc = \"Greets.\"] pub fn hello() -> ::bine::__private::Route {
                     #[allow(clippy::unused_async, clippy::needless_pass_by_value)] #[inline]
                     async fn hello(Query(name): Query<Text>, r#type: Map<A, B>) -> impl Page { body }
                     ::bine::__private::Route::future(::bine::__private::Methods::GET,
                         \"/hello\", ::core::concat!(::core::module_path!(), \"::hello\"),
                         |request: &mut ::bine::__private::RequestParts<'_>| { ::core::result::Result::Ok(hello(
                             <Query<Text> as ::bine::__private::FromRequest>::from_request(request, \"name\")?,
                             <Map<A, B> as ::bine::__private::FromRequest>::from_request(request, \"type\")?,
                         )) }).taking(&[(\"name\", \"Query<Text>\"), (\"type\", \"Map<A, B>\"), ]).needing(&[
                             <Query<Text> as ::bine::__private::FromRequest>::needs,
                             <Map<A, B> as ::bine::__private::FromRequest>::needs, ])
                 }",
        );
    }

    #[test]
    fn plain_function_becomes_a_blocking_route() {
        check(
            "(POST | PUT \"/\", crate = crate) #[cfg(unix)] pub(crate) fn front(mut a: fn(u8) -> u8) {}",
            "#[cfg(unix)] pub(crate) fn front() -> crate::__private::Route {
                     #[allow(clippy::unused_async, clippy::needless_pass_by_value)]
                     fn front(mut a: fn(u8) -> u8) {}
                     crate::__private::Route::blocking(
                         crate::__private::Methods::POST.or(crate::__private::Methods::PUT), \"/\", ::core::concat!(::core::module_path!(), \"::front\"),
                         |request: &mut crate::__private::RequestParts<'_>| { ::core::result::Result::Ok(front(
                             <fn(u8) -> u8 as crate::__private::FromRequest>::from_request(request, \"a\")?,
                         )) }).taking(&[(\"a\", \"fn(u8)->u8\"), ]).needing(&[ <fn(u8) -> u8 as crate::__private::FromRequest>::needs, ])
                 }",
        );
    }

    #[test]
    fn rejects_invalid_paths() {
        check_fault("(\"hello\") fn a() {}", "\"hello\": a path starts with `/`");
        check_fault(
            "(\"/a?b\") fn a() {}",
            "\"/a?b\": a path has no query: use an argument of the function",
        );
        check_fault(
            "(\"/a#b\") fn a() {}",
            "\"/a#b\": a path has no fragment: it never reaches a server",
        );
        check_fault("(\"/a b\") fn a() {}", "\"/a b\": a path has no ' '");
        check_fault("(path) fn a() {}", "path: a page has a path: `#[page(\"/path\")]`");
        let (_, expansion) = expand("() fn a() {}");
        assert_eq!(expansion.faults[0].message, "a page has a path: `#[page(\"/path\")]`");
    }

    #[test]
    fn rejects_unknown_methods() {
        check_fault(
            "(GRAB \"/\") fn a() {}",
            "GRAB: unknown method GRAB: use one of GET, HEAD, POST, PUT, DELETE, PATCH, QUERY, OPTIONS, or `*`",
        );
        let (sample, expansion) = expand("(* \"/\") fn a() {}");
        assert!(sample.spell(&expansion).contains("Methods::ALL"));
    }

    #[test]
    fn path_parameters_must_match_arguments() {
        check_fault(
            "(\"/a/{id}\") fn a() {}",
            "\"/a/{id}\": no argument takes `{id}`: add `id: Path<Text>`",
        );
        check_fault("(\"/a\") fn a(id: Path<u8>) {}", "Path: the path has no `{id}` for this");
        let message = "`x{id}` is not a parameter: `{name}` matches a whole segment, `{name..}` the rest of the path";
        check_fault("(\"/x{id}\") fn a(id: Path<u8>) {}", &format!("\"/x{{id}}\": {message}"));
    }

    #[test]
    fn rejects_unknown_options() {
        check_fault(
            "(\"/\", name = a) fn a() {}",
            "name: after the path only `crate = path` may follow",
        );
    }

    #[test]
    fn rejects_methods_with_self() {
        check_fault(
            "(\"/\") fn a(&self) {}",
            "self: a page cannot take `self`: its arguments come from the request",
        );
    }

    #[test]
    fn rejects_generic_functions() {
        let message = "a page cannot be generic";
        check_fault("(\"/\") fn a<T>(x: T) {}", &format!("<: {message}"));
        check_fault("(\"/\") fn a(x: impl Page) {}", &format!("impl: {message}"));
    }

    #[test]
    fn rejects_patterns_without_a_name() {
        let message = "an argument of a page is a name or a wrapped name: `name` or `Query(name)`";
        check_fault(
            "(\"/\") fn a((b, c): D, _: E) {}",
            &format!("(b, c): {message}\n_: {message}"),
        );
    }

    #[test]
    fn rejects_items_other_than_functions() {
        check_fault(
            "(\"/\") struct A;",
            "struct: a page is a function: `async fn name(..)` or `fn name(..)`",
        );
    }

    #[test]
    fn faulty_page_still_defines_its_name() {
        let (sample, expansion) = expand("(\"x\") pub fn a() {}");
        assert!(
            sample
                .spell(&expansion)
                .contains("fn a () -> ::bine::__private::Route {::core::unreachable!()}")
        );
    }
}
