//! Variables of a page: used in content and attributes, in each kind of body, and shadowed.

use std::cell::Cell;

use bine::{Page, Tree};

struct Order {
    name: &'static str,
    price: u32,
    count: u32,
}

fn orders() -> [Order; 2] {
    [Order { name: "hops", price: 3, count: 4 }, Order { name: "vines", price: 5, count: 1 }]
}

/// Counts the evaluations.
fn numbers() -> impl Fn() -> u32 {
    let count = Cell::new(0);
    move || count.replace(count.get() + 1)
}

/// The same markup for both macros.
macro_rules! markup {
    ($macro:ident, $orders:ident, $next:ident) => {
        bine::$macro! {
            {let sum: u32 = $orders.iter().map(|order| order.price * order.count).sum();}
            <h1 title={sum}>Sum: {sum}</h1>
            <ul>
                {let name = "shadowed";}
                {for order in &$orders {
                    {let total = order.price * order.count; let Order { name, .. } = order;}
                    <li data-total={total} data-each={$next()}>
                        {let total = format!("{total} coins");}
                        <b title={&total}>{name}</b> {total}
                    </li>
                    <li>{total} of {sum}</li>
                }}
                <li>{name}</li>
            </ul>
            {if let Some(first) = $orders.first() {
                {let count = $next();}
                <p id={count}>{first.name}: {count}{count}</p>
            } else {
                {let nothing = "nothing";}
                {nothing}
            }}
            {match sum { 0 => { none } sum => { {let half = sum / 2;} <p>half: {half}</p> } }}
            {let mut rows = $orders.iter().map(|order| order.name);}
            {for first in rows.by_ref().take(1) { <i>{first}</i> }}
            {for rest in rows { <u>{rest}</u> }}
            <p>one {let two = 2;} {two}{let three = 3;}{three}
                {let four = 4;}
                {four}</p>
            <svg>{let radius = 2;}<circle r={radius} /></svg>
        }
    };
}

pub(super) fn page() -> impl Page {
    let (orders, next) = (orders(), numbers());
    markup!(html, orders, next)
}

pub(super) fn tree() -> Tree {
    let (orders, next) = (orders(), numbers());
    markup!(tree, orders, next)
}
