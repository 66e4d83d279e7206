//! A custom scheduler: event loops, and threads for blocking pages that take the newest request
//! first. A client that has waited long has often given up; under overload, this order serves the
//! clients that still wait.
//!
//! Run `cargo run --release --example scheduler`, then open <http://127.0.0.1:8080/>.

use std::sync::{Arc, Condvar, Mutex};
use std::{io, thread};

use bine::prelude::*;
use bine::scheduler::{
    Next, Placement, ResponseKind, Scheduler, Server, Task, Ticket, serve_loops,
};

const THREADS: usize = 4;
const MOST: usize = 1000;

/// The tasks that wait for a thread. No handler runs under the lock, so a panic cannot poison it.
#[derive(Default)]
pub(crate) struct Stack(Mutex<Vec<Task>>, Condvar);

impl Scheduler for Stack {
    fn accept(self: Arc<Self>, server: &Arc<Server>) -> io::Result<()> {
        for _ in 0..THREADS {
            let own = Arc::clone(&self);
            // They end with the process.
            thread::spawn(move || own.work());
        }
        serve_loops(server, &(self as Arc<dyn Scheduler>))
    }

    fn stage(&self, next: Next) -> Placement {
        if next == Next::Response(ResponseKind::Dynamic) {
            Placement::Spawn
        } else {
            Placement::SameThread
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        let mut waiting = self.0.lock().unwrap();
        if waiting.len() == MOST {
            // The server answers this request with a 503.
            return Err(task);
        }
        waiting.push(task);
        self.1.notify_one();
        Ok(())
    }

    fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        let mut waiting = self.0.lock().unwrap();
        let place = waiting.iter().position(|task| task.ticket() == ticket)?;
        Some(waiting.remove(place))
    }

    fn load(&self) -> f32 {
        self.0.lock().unwrap().len() as f32 / MOST as f32
    }
}

impl Stack {
    fn work(&self) {
        loop {
            let waiting = self.0.lock().unwrap();
            let next = self.1.wait_while(waiting, |waiting| waiting.is_empty()).unwrap().pop();
            next.into_iter().for_each(Task::run);
        }
    }
}

#[page("/")]
fn hello(name: Query<Option<Text>>) -> impl Page {
    html!(<h1>Hello {name.0.unwrap_or_default()}</h1>)
}

fn main() -> Exit {
    App::new().page(hello).scheduler(Arc::new(Stack::default())).run()
}
