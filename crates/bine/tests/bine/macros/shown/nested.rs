//! Loops, conditions and components nested in each other, and pages in variables.

use bine::{Flow, Html, Page, Phrasing, html};

pub(super) fn page() -> impl Page {
    let numbers = vec![Some(1_u8), None, Some(3)];
    let groups = [("odd", Ok(numbers)), ("none", Ok(vec![])), ("bad", Err("lost & gone"))];
    let badges: Vec<_> = ["x", "y"].into_iter().map(|name| html!(<b>{name}</b>)).collect();
    html! {
        {for (name, group) in &groups {
            {card(name, html! {
                {match group {
                    Ok(numbers) if numbers.is_empty() => { <p>empty</p> }
                    Ok(numbers) => {
                        <ol>{for number in numbers {
                            <li value={number}>
                                {match number {
                                    Some(number) => { {if *number > 1 { many } else { {card("one", html!(<i>{number}</i>))} }} }
                                    None => { {part(*name == "odd")} }
                                }}
                            </li>
                        }}</ol>
                    }
                    Err(error) => { <p role="alert">{error}</p> }
                }}
            })}
        }}
        {badges}
    }
}

fn card(title: &str, children: impl Html<Flow>) -> impl Html<Flow> {
    html!(<section><h2>{title}</h2>{children}</section>)
}

/// Returns one of two pages, chosen at run time.
fn part(is_gap: bool) -> Box<dyn Html<Phrasing>> {
    if is_gap { Box::new(html!(<s>gap</s>)) } else { Box::new(html!("nothing at all")) }
}
