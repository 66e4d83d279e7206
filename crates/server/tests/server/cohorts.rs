//! Tests of the stages of a cohort: their order, and that a cohort ends in one turn.

use crate::house::House;
use crate::peer::get;

/// A loop that does not gather requests, such as `event`, runs the first blocking handler before it
/// answers the second request.
#[test]
fn runs_nonblocking_handlers_of_a_cohort_first() {
    for (scheduler, said) in [("cohort", &["b", "c"][..]), ("event", &[])] {
        let house = House::open(scheduler);
        let mut holder = house.connect();
        holder.send(get("/hold/loop"));
        house.program.gate("loop").await_arrivals(1);
        // The loop receives all requests in one turn, in this order.
        let mut peers: Vec<_> = (0..3).map(|_| house.connect()).collect();
        for (peer, path) in peers.iter_mut().zip(["/block/late", "/say/b", "/say/c"]) {
            peer.send(get(path));
        }
        house.program.gate("loop").open();
        house.program.gate("late").await_arrivals(1);
        assert_eq!(house.program.said(), said, "{scheduler}");
        house.program.gate("late").open();
        for peer in &mut peers {
            assert_eq!(peer.reply().status, 200);
        }
    }
}

/// More connections than a cohort holds, each with more requests than a slice, are all answered.
#[test]
fn answers_all_requests_of_an_oversized_cohort() {
    let house = House::open("cohort");
    let mut holder = house.connect();
    holder.send(get("/hold/loop"));
    house.program.gate("loop").await_arrivals(1);
    let mut peers: Vec<_> = (0..100).map(|_| house.connect()).collect();
    let paths: Vec<_> = ["/a", "/work", "/yield", "/page/3000", "/long/300"].repeat(8);
    let requests: String = paths.iter().map(|path| get(path)).collect();
    for peer in &mut peers {
        peer.send(requests.as_bytes());
    }
    house.program.gate("loop").open();
    assert_eq!(holder.reply().status, 200);
    for peer in &mut peers {
        for path in &paths {
            assert_eq!(peer.reply().status, 200, "{path}");
        }
    }
}
