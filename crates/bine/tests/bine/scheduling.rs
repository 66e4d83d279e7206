//! Decides that a program can bring its own scheduler, with the front door's words alone.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bine::scheduler::{Next, Place, Scheduler, Server, Task, serve_loops};
use bine::{App, Exit};

use crate::app;
use crate::harness::Program;

/// Everything on the event loops, counted.
#[derive(Default)]
struct Counting {
    stages: AtomicUsize,
}

impl Scheduler for Counting {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        let own: Arc<dyn Scheduler> = Arc::<Self>::clone(&self);
        let outcome = serve_loops(server, &own);
        println!("\nstages: {}", self.stages.load(Ordering::Relaxed));
        outcome
    }

    fn stage(&self, _next: Next) -> Place {
        self.stages.fetch_add(1, Ordering::Relaxed);
        Place::Here
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        Err(task)
    }

    fn load(&self) -> f32 {
        0.0
    }
}

#[test]
fn a_program_can_bring_its_own_scheduler() -> Exit {
    if let Some(options) = app::options() {
        let app = App::new().page(app::hello).page(app::plain_hello);
        return app
            .scheduler(Arc::new(Counting::default()))
            .run_with("Usage: app", options.lines());
    }
    let test = "scheduling::a_program_can_bring_its_own_scheduler";
    let program = Program::start(&mut app::program(test, &[]));
    let mut peer = program.connect();
    for target in ["/hello?name=a", "/hello/plain?name=a"] {
        assert_eq!(peer.get(target).text(), "<h1>Hello a</h1>");
    }
    let ended = program.stop();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // A loop asks about a stage that may block, and there was one.
    assert!(ended.output.contains("\nstages: 1\n"), "{ended:?}");
    Exit::fine()
}
