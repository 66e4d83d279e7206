//! Decides in which order a cohort goes through the stages, and that it ends in one turn.

use crate::house::House;
use crate::peer::get;

/// Symptom of a loop that does not gather: the first handler that blocks keeps the second request
/// from being answered, which `event` does and is told apart by.
#[test]
fn runs_nonblocking_handlers_of_a_cohort_first() {
    for (scheduler, said) in [("cohort", &["b", "c"][..]), ("event", &[])] {
        let house = House::open(scheduler);
        let mut holder = house.connect();
        holder.send(get("/hold/loop"));
        house.program.gate("loop").await_arrivals(1);
        // All of them come in one turn, in this order.
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

/// More come at once than go through the stages together, and each of them with more requests than
/// its slice: nobody is forgotten between two stages.
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
