//! Form fields with their current values.

use bine::{Page, html};

pub(super) fn page() -> impl Page {
    let (name, chosen, is_open) = ("Ann \"B\"", "hops", true);
    html! {
        <form method="post" action="/order">
            <label>Name <input name="name" value={name} required autocomplete="name"></label>
            <label for="count">How many</label> <input id="count" type="number" name="count" min="1" max="9" value={3}>
            <select name="plant">
                {for plant in ["hops", "vine"] { <option value={plant} selected={plant == chosen}>{plant}</option> }}
            </select>
            <textarea name="note" rows="3">"\nfirst line"</textarea>
            <fieldset disabled={!is_open}><legend>When</legend><input type="date" name="day" value="2026-11-21"></fieldset>
            <button>Order</button>
        </form>
    }
}
