//! Checks the generated table: known facts of the standards, and the order that binary search
//! requires.

mod typescript;

use bine_vocabulary::{
    Attribute, Categories, Content, Element, Given, Kind, MATHML, Rule, SVG, Value, at_rule,
    at_rules, colors, element, elements, event_handlers, functions, global_attributes,
    global_rules, is_css_wide_keyword, is_custom, properties, property, pseudo_classes,
    pseudo_elements, role, roles, state, states,
};

#[track_caller]
fn known(name: &str) -> &'static Element {
    element(name).unwrap_or_else(|| panic!("no {name}"))
}

#[track_caller]
fn attribute(element: &str, name: &str) -> &'static Attribute {
    known(element).attribute(name).unwrap_or_else(|| panic!("{element} has no {name}"))
}

/// Returns whether a parent allows a child directly.
#[track_caller]
fn allows(parent: &str, child: &str) -> bool {
    let child = known(child);
    known(parent).content.allows(child, child.categories)
}

#[test]
fn lists_are_sorted_for_binary_search() {
    let names_of = |list: &'static [Attribute]| list.iter().map(|one| one.name).collect();
    let lists: Vec<Vec<&str>> = vec![
        elements().iter().map(|one| one.name).collect(),
        names_of(global_attributes()),
        names_of(event_handlers()),
        names_of(states()),
        roles().iter().map(|one| one.name).collect(),
        properties().iter().map(|one| one.name).collect(),
        at_rules().iter().map(|one| one.name).collect(),
        pseudo_classes().to_vec(),
        pseudo_elements().to_vec(),
        functions().to_vec(),
        SVG.elements.to_vec(),
        SVG.attributes.to_vec(),
        MATHML.elements.to_vec(),
        MATHML.attributes.to_vec(),
    ];
    let own = elements().iter().map(|element| names_of(element.attributes));
    for list in own.chain(lists) {
        assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
    }
}

#[test]
fn finds_every_listed_name() {
    assert!(elements().iter().all(|one| element(one.name).is_some()));
    assert!(roles().iter().all(|one| role(one.name).is_some()));
    assert!(states().iter().all(|one| state(one.name).is_some()));
    assert!(properties().iter().all(|one| property(one.name).is_some()));
    assert!(at_rules().iter().all(|one| at_rule(one.name).is_some()));
    assert!(element("blog").is_none() && element("A").is_none() && element("").is_none());
}

#[test]
fn rules_mention_only_existing_names() {
    for one in elements() {
        let Content { elements, once, .. } = one.content;
        let names = [elements, once, one.excluded.elements, one.parents, one.within, one.around];
        let needs = one.needs.iter().flat_map(|names| names.split('|'));
        let order = one.order.iter().filter(|name| *name != "*");
        for name in names.into_iter().flatten().chain(needs).chain(order) {
            assert!(element(name).is_some(), "{} mentions {name}", one.name);
        }
        for rule in one.rules.iter().chain(global_rules()) {
            let (wanted, given) = attributes_of(rule);
            for name in wanted.into_iter().chain(given) {
                let found = one.attribute(name);
                assert!(found.is_some_and(|found| found.deprecated.is_none()), "{name}");
            }
        }
        // Every required parent must allow the element.
        for parent in one.parents {
            let name = one.name;
            assert!(known(parent).content.allows(one, one.categories), "{name} in {parent}");
        }
    }
    for role in roles() {
        for name in role.states.iter().chain(role.required).chain(role.prohibited) {
            assert!(state(name).is_some(), "{} mentions {name}", role.name);
        }
    }
}

/// Returns the attributes that a rule concerns, and the attribute in the condition.
fn attributes_of(rule: &Rule) -> (Vec<&'static str>, Option<&'static str>) {
    let of = |given: &Given| {
        let (Given::Present(of) | Given::Among(of, _) | Given::Except(of, _)) = *given;
        Some(of)
    };
    match rule {
        Rule::Any(names) => (names.iter().collect(), None),
        Rule::Needs(name, given) => (vec![name], of(given)),
        Rule::Only(names, given) => (names.iter().collect(), of(given)),
        Rule::In(name, _) => (vec![name], None),
    }
}

#[test]
fn lists_void_elements_of_the_standard() {
    // HTML 13.1.2.
    let current = elements().iter().filter(|one| one.void && one.deprecated.is_none());
    let names: Vec<&str> = current.map(|one| one.name).collect();
    let expected = "area base br col embed hr img input link meta source track wbr";
    assert_eq!(names.join(" "), expected);
    assert!(elements().iter().filter(|one| one.void).all(|one| !one.content.text));
}

#[test]
fn allows_parts_only_in_their_parents() {
    assert_eq!(known("li").parents.to_string(), "`menu`, `ol`, `template`, `ul`");
    assert_eq!(known("tr").parents.to_string(), "`table`, `tbody`, `template`, `tfoot`, `thead`");
    for (parent, child) in [
        ("ul", "li"),
        ("tr", "td"),
        ("tr", "th"),
        ("dl", "dt"),
        ("select", "option"),
        ("template", "td"),
        ("fieldset", "legend"),
        ("ul", "script"),
        ("head", "title"),
        ("picture", "source"),
        ("ruby", "rt"),
    ] {
        assert!(allows(parent, child), "{child} in {parent}");
    }
    for (parent, child) in [
        ("p", "li"),
        ("div", "li"),
        ("div", "tr"),
        ("div", "td"),
        ("div", "th"),
        ("p", "legend"),
        ("ul", "div"),
        ("body", "title"),
        ("body", "style"),
        ("head", "p"),
    ] {
        assert!(!allows(parent, child), "{child} in {parent}");
    }
}

#[test]
fn rejects_blocks_in_phrasing_content() {
    for (parent, child) in [("p", "div"), ("span", "div"), ("p", "p"), ("h1", "h2"), ("b", "ul")] {
        assert!(!allows(parent, child), "{child} in {parent}");
    }
    for (parent, child) in [("p", "em"), ("div", "p"), ("li", "div"), ("label", "input")] {
        assert!(allows(parent, child), "{child} in {parent}");
    }
}

#[test]
fn defines_order_and_required_children() {
    let (order, needs) = (|name| known(name).order, |name| known(name).needs);
    assert!(order("table").iter().eq(["caption", "colgroup", "thead", "tbody", "tr", "tfoot"]));
    assert!(order("figure").iter().eq(["figcaption", "*", "figcaption"]));
    assert!(order("video").iter().eq(["source", "track", "*"]) && order("object").is_empty());
    assert!(needs("picture").contains("img") && needs("html").is_empty());
    assert!(needs("hgroup").contains("h1|h2|h3|h4|h5|h6") && needs("div").is_empty());
    assert_eq!(known("main").around.to_string(), "`body`, `div`, `form`, `html`");
}

#[test]
fn attributes_of_input_depend_on_type() {
    let types = |name| attribute("input", name).types;
    assert_eq!(types("checked").to_string(), "`checkbox`, `radio`");
    assert!(types("maxlength").contains("text") && !types("maxlength").contains("number"));
    assert!(types("name").is_empty() && attribute("button", "formaction").types.is_empty());
    // Each listed type must be a valid type.
    let kind = attribute("input", "type").kind;
    let all = known("input").attributes.iter().flat_map(|one| one.types);
    assert!(all.into_iter().all(|word| kind.words().contains(word)));
}

#[test]
fn excludes_descendants_at_any_depth() {
    let excludes = |outer: &str, inner: &str| {
        let inner = known(inner);
        known(outer).excluded.contains(inner, inner.categories)
    };
    assert!(excludes("a", "a") && excludes("a", "button") && excludes("button", "select"));
    assert!(excludes("form", "form") && excludes("label", "label") && excludes("header", "footer"));
    assert!(excludes("address", "h1") && excludes("address", "nav") && excludes("article", "main"));
    assert!(!excludes("a", "em") && !excludes("address", "blockquote") && !excludes("th", "p"));
}

#[test]
fn some_categories_depend_on_attributes() {
    let sometimes = |name| known(name).sometimes.expect("a condition");
    let has = |wanted: &'static str, value| {
        move |name: &str| if name == wanted { value } else { Value::Absent }
    };
    let a = sometimes("a");
    assert_eq!(a.categories, Categories::INTERACTIVE);
    assert_eq!(a.holds(has("href", Value::Unknown)), Some(true));
    assert_eq!(a.holds(has("class", Value::Is("x"))), Some(false));

    let input = sometimes("input");
    assert!(matches!(input.given, [Given::Except("type", words)] if words.contains("hidden")));
    assert_eq!(input.holds(has("type", Value::Is("hidden"))), Some(false));
    assert_eq!(input.holds(has("type", Value::Is("text"))), Some(true));
    assert_eq!(input.holds(has("type", Value::Unknown)), None);
    assert_eq!(input.holds(has("type", Value::Absent)), Some(true));

    let link = sometimes("link");
    assert_eq!(link.categories, Categories::FLOW.or(Categories::PHRASING));
    assert_eq!(link.holds(has("rel", Value::Is("preload stylesheet"))), Some(true));
    assert_eq!(link.holds(has("rel", Value::Is("icon"))), Some(false));
    assert_eq!(link.holds(has("rel", Value::Unknown)), None);
    assert_eq!(link.holds(has("itemprop", Value::Unknown)), Some(true));
}

#[test]
fn formats_rules_about_required_attributes() {
    let rules = |name| {
        let messages = known(name).rules.iter().map(ToString::to_string);
        messages.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(rules("img"), "needs `alt`; needs `src`");
    assert_eq!(rules("base"), "needs `href` or `target`");
    assert_eq!(
        rules("source"),
        "needs `src` in `<audio>` or `<video>`; needs `srcset` in `<picture>`"
    );
    assert!(rules("area").starts_with("needs `alt` beside `href`; "));
    assert!(rules("a").ends_with("`rel`, `target`, `type` only beside `href`"));
    assert_eq!(
        rules("track"),
        "needs `src`; needs `srclang` where `kind` is not one of `captions`, `chapters`, `descriptions`, `metadata`"
    );
    assert_eq!(rules("p"), "");
}

#[test]
fn attributes_take_values_of_the_standard() {
    assert_eq!(attribute("a", "href").kind, Kind::Url);
    assert_eq!(attribute("form", "action").kind, Kind::Url);
    assert_eq!(attribute("input", "checked").kind, Kind::Boolean);
    assert_eq!(attribute("input", "maxlength").kind, Kind::Whole);
    assert_eq!(attribute("ol", "start").kind, Kind::Integer);
    assert_eq!(attribute("meter", "low").kind, Kind::Number);
    assert_eq!(attribute("label", "for").kind, Kind::Id);
    assert_eq!(attribute("td", "colspan").kind, Kind::Positive);
    assert_eq!(attribute("html", "lang").kind, Kind::Language);
    assert_eq!(attribute("img", "usemap").kind, Kind::Fragment);
    assert_eq!(attribute("object", "form").kind, Kind::Id);
    assert!(!attribute("bdo", "dir").kind.accepts("auto"));
    assert!(attribute("p", "contenteditable").kind.accepts("plaintext-only"));
    assert!(attribute("time", "datetime").kind.accepts("2026-W47"));
    assert!(!attribute("ins", "datetime").kind.accepts("2026-W47"));
    assert_eq!(attribute("td", "headers").kind, Kind::Ids);
    assert_eq!(attribute("p", "class").kind, Kind::Text);
    assert_eq!(attribute("p", "style").kind, Kind::Style);
    assert_eq!(attribute("p", "onclick").kind, Kind::Script);
    assert_eq!(attribute("body", "onhashchange").kind, Kind::Script);
    assert_eq!(attribute("a", "download").kind, Kind::TextOrNone);
    assert_eq!(attribute("p", "data-place").name, "data-*");
    assert!(
        known("p").attribute("href").is_none() && known("p").attribute("onhashchange").is_none()
    );

    let kind = attribute("input", "type").kind;
    assert!(kind.accepts("datetime-local") && !kind.accepts("datetime") && !kind.accepts(""));
    assert_eq!(kind.words().iter().count(), 22);
    let kind = attribute("img", "loading").kind;
    assert!(kind.accepts("lazy") && kind.allows_no_value() && !kind.accepts("later"));
    assert!(attribute("a", "target").kind.accepts("chat"));
    assert!(attribute("p", "hidden").kind.allows_no_value());
    assert!(attribute("iframe", "sandbox").kind.accepts("allow-forms allow-scripts"));
}

#[test]
fn deprecated_names_have_replacements() {
    assert_eq!(known("center").deprecated, Some("use CSS `text-align` or `margin`"));
    assert_eq!(known("strike").deprecated, Some("use `del` or `s`"));
    assert_eq!(attribute("body", "bgcolor").deprecated, Some("use CSS `background-color`"));
    assert_eq!(attribute("td", "scope").deprecated, Some("use `th`"));
    assert!(attribute("th", "scope").deprecated.is_none() && known("b").deprecated.is_none());
    let attributes = elements().iter().flat_map(|one| one.attributes);
    let advice = attributes.filter_map(|one| one.deprecated);
    assert!(
        elements().iter().filter_map(|one| one.deprecated).chain(advice).all(|one| !one.is_empty())
    );
}

#[test]
fn checks_names_of_custom_elements() {
    assert!(is_custom("my-clock") && is_custom("x-1.a"));
    for name in ["clock", "My-clock", "-a", "font-face", "annotation-xml", "a-B", "1-a", ""] {
        assert!(!is_custom(name), "{name}");
    }
}

#[test]
fn svg_and_mathml_names_are_case_sensitive() {
    assert!(SVG.has_element("linearGradient") && !SVG.has_element("lineargradient"));
    assert!(SVG.has_element("feDropShadow") && SVG.has_element("animate") && SVG.has_element("a"));
    assert!(SVG.has_attribute("viewBox") && !SVG.has_attribute("viewbox"));
    assert!(SVG.has_attribute("stroke-width") && SVG.has_attribute("aria-label"));
    assert!(SVG.has_attribute("onclick") && SVG.has_attribute("data-x"));
    assert!(MATHML.has_element("mfrac") && MATHML.has_attribute("displaystyle"));
    assert!(!MATHML.has_element("frac") && !SVG.has_attribute("tabidx"));
}

#[test]
fn roles_define_states_and_required_states() {
    let checkbox = role("checkbox").expect("a role");
    assert_eq!(checkbox.required.to_string(), "`aria-checked`");
    assert!(checkbox.states.contains("aria-readonly") && !checkbox.states.contains("aria-label"));
    assert!(role("generic").expect("a role").prohibited.contains("aria-label"));
    for name in ["button", "none", "presentation", "doc-toc", "graphics-symbol", "searchbox"] {
        assert!(role(name).is_some(), "{name}");
    }
    // Abstract roles.
    assert!(role("widget").is_none() && role("roletype").is_none());
    let checked = state("aria-checked").expect("a state").kind;
    assert!(checked.accepts("mixed") && !checked.accepts("yes") && !checked.accepts(""));
    assert!(state("aria-grabbed").is_some_and(|state| state.deprecated.is_some()));
}

#[test]
fn properties_accept_keywords_of_their_grammar() {
    #[track_caller]
    fn check(name: &str, right: &str, wrong: &str) {
        let property = property(name).unwrap_or_else(|| panic!("no {name}"));
        assert!(right.split_ascii_whitespace().all(|word| property.accepts(word)), "{right}");
        assert!(!wrong.split_ascii_whitespace().any(|word| property.accepts(word)), "{wrong}");
    }
    check(
        "display",
        "flex inline-block none grid contents Flex inherit -webkit-box",
        "flexbox red",
    );
    check("color", "red currentColor transparent CanvasText unset", "rad auto");
    check("border", "solid thin red", "sold both");
    check("position", "absolute sticky", "middle");
    check("text-align", "center start", "middle centre");
    check("margin-left", "auto", "none");
    check("font-weight", "bold lighter", "heavy");
    check("z-index", "auto", "top");
    // Names that the page defines.
    check("animation-name", "none wobble", "");
    check("font-family", "serif Verdana", "");
    assert_eq!(property("word-wrap").and_then(|one| one.alias_of), Some("overflow-wrap"));
    assert!(
        property("colour").is_none()
            && is_css_wide_keyword("revert-layer")
            && colors().contains("rebeccapurple")
    );
}

#[test]
fn knows_css_at_rules_selectors_and_functions() {
    assert!(at_rule("font-face").is_some_and(|rule| rule.descriptors.contains("font-display")));
    assert!(at_rule("media").is_some_and(|rule| rule.descriptors.contains("prefers-color-scheme")));
    assert!(at_rule("container").is_some() && at_rule("layer").is_some());
    assert!(at_rule("keyframe").is_none());
    for class in ["hover", "focus-visible", "has()", "nth-child()", "not()", "root"] {
        assert!(pseudo_classes().binary_search(&class).is_ok(), "{class}");
    }
    for part in ["before", "placeholder", "part()"] {
        assert!(pseudo_elements().binary_search(&part).is_ok(), "{part}");
    }
    for function in
        ["calc", "clamp", "color-mix", "linear-gradient", "rgb", "translateX", "url", "var"]
    {
        assert!(functions().binary_search(&function).is_ok(), "{function}");
    }
}
