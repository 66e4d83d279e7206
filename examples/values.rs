//! A page of 984 bytes with twenty escaped values, to measure its cost compared with the smallest
//! page.
//!
//! Run `cargo run --release --example values`, then open <http://127.0.0.1:8080/values>.

use bine::{App, Page, State, html, page};

/// The person on call for a team.
struct Duty {
    team: String,
    person: String,
}

type Duties = Vec<Duty>;

#[page("/values")]
async fn values(duties: State<Duties>) -> impl Page {
    html! {
        <h1>On duty</h1>
        <p>"Whom to call this week, and for what. A name that is missing here has the week off."</p>
        <table>
            <tr><th>Team</th><th>Person</th></tr>
            {for duty in duties.iter() {
                <tr><td class="team">{duty.team}</td><td class="person">{duty.person}</td></tr>
            }}
        </table>
        <p>"If nobody answers within ten minutes, call the next one on this list; it goes round from the top."</p>
    }
}

fn main() -> bine::Exit {
    let duties = [
        ("Roads & bridges", "Ann"),
        ("Water", "Bob O'Neill"),
        ("Light", "Cecilia"),
        ("Post < 2 kg", "Dora"),
        ("Telegraph", "Emil \"Em\" Berg"),
        ("Harbor", "Frida"),
        ("Forests", "Gustav"),
        ("Schools", "Hanna"),
        ("Archive & library", "Ivar"),
        ("Fire", "Jo"),
    ];
    let duty = |(team, person): (&str, &str)| Duty { team: team.into(), person: person.into() };
    App::new().state::<Duties>(duties.map(duty).into()).page(values).run()
}
