//! A reverse proxy with a balancing policy of its own: a customer goes to the origin of its region.
//!
//! `cargo run --release --example balancer`, with origins at the ports 9000 and 9001, then
//! `curl -H 'Region: south' http://127.0.0.1:8080/`.

use bine::prelude::*;
use bine::proxy::{BalancePolicy, BalancedRequest, LeastOutstanding, OriginCandidate, Proxy};

/// The origins of the regions `north` and `south`, in this order.
const ORIGINS: [&str; 2] = ["http://127.0.0.1:9000", "http://127.0.0.1:9001"];
const REGIONS: [&str; 2] = ["north", "south"];

/// Prefers the origin of the region that the field `Region` names. If that is not up, or there is no
/// such field, the least busy one answers.
#[derive(Default)]
struct ByRegion {
    otherwise: LeastOutstanding,
}

impl BalancePolicy for ByRegion {
    fn choose(&self, candidates: &[OriginCandidate<'_>], request: &BalancedRequest<'_>) -> usize {
        let region = request.field("region");
        let wanted = REGIONS.iter().position(|name| Some(*name) == region);
        let own = candidates.iter().position(|candidate| Some(candidate.index) == wanted);
        own.unwrap_or_else(|| self.otherwise.choose(candidates, request))
    }
}

#[page("/about")]
async fn about() -> impl Page {
    html!(<h1>The shop in two regions</h1>)
}

fn main() -> Exit {
    let proxy = Proxy::to(ORIGINS).with("check", "/health").balance(ByRegion::default());
    App::new().page(about).proxy("/", proxy).run()
}
