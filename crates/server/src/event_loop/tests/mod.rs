//! Tests of single turns: a loop on real sockets, with a clock that only the test moves.

mod accepting;
mod overloaded;
mod run;
mod suspended;
mod turns;

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use bine_http::{Reply, Status};
use tokio::runtime::LocalRuntime;

use super::*;
use crate::address::ClientAddress;
use crate::handler::{
    Answer, Body, Done, Handler, HandlerContext, Identity, Incoming, Outgoing, Responder, Upgrade,
    Work,
};
use crate::settings::{Listen, Settings};

/// The resolution of the clock.
const MOMENT: Duration = Duration::from_millis(1);

/// The path of a request selects the answer.
struct TestProgram;

impl Handler for TestProgram {
    fn local(&self, context: HandlerContext) -> Box<dyn Responder> {
        Box::new(Local(context.clock))
    }
}

struct Local(Rc<Clock>);

impl Responder for Local {
    fn identify(&mut self, head: &bine_http::Head<'_>, _peer: ClientAddress) -> Identity {
        head.field("name").map_or(Identity::Anonymous, |_| Identity::named("ann"))
    }

    fn respond(&mut self, request: &Incoming<'_>, out: &mut Outgoing<'_>) -> Answer {
        let path = request.head.path();
        let (name, number) = path[1..].split_once('/').unwrap_or((&path[1..], "0"));
        let number: usize = number.parse().unwrap_or(0);
        let content = match name {
            "job" => return Answer::Work(Arc::new(TestWork)),
            "later" => return Answer::Later(Box::pin(std::future::pending())),
            "upgrade" => {
                let mut reply = Vec::new();
                let (status, date) = (Status::SWITCHING_PROTOCOLS, self.0.date());
                Reply::begin(&mut reply, request.exchange, status, &date).empty();
                out.buffer.append(&mut reply);
                return Answer::Upgrade(Upgrade::new(|connection| {
                    Box::pin(async move {
                        std::future::pending::<()>().await;
                        drop(connection);
                        Ok(())
                    })
                }));
            }
            "open" => return Answer::WhileOpen(Box::pin(std::future::pending())),
            "echo" if matches!(request.body, Body::Pending) => {
                return Answer::Collect { limit: 1 << 20, on_disk: false };
            }
            "panic" => resume_unwind(Box::new("a handler's fault")),
            "long" => vec![b'x'; number],
            _ => name.as_bytes().to_vec(),
        };
        Reply::begin(out.buffer, request.exchange, Status::OK, &self.0.date()).whole(&content);
        Answer::Written { close: false }
    }

    fn last(&self) -> &'static str {
        "test program"
    }
}

struct TestWork;

impl Work for TestWork {
    fn run(&self, request: &Retained, clock: &Clock, out: &mut Outgoing<'_>) -> Done {
        Reply::begin(out.buffer, request.exchange, Status::OK, &clock.date()).whole(b"worked");
        Done::default()
    }

    fn name(&self) -> &'static str {
        "test work"
    }
}

/// A scheduler whose workers the test plays.
struct TestScheduler {
    place: Placement,
    waiting: Mutex<Vec<Task>>,
    most_waiting: usize,
    overdue: AtomicUsize,
    returned: AtomicUsize,
    is_overloaded: AtomicBool,
}

impl TestScheduler {
    fn waiting(&self) -> MutexGuard<'_, Vec<Task>> {
        self.waiting.lock().unwrap()
    }

    fn counts(&self) -> (usize, usize) {
        (self.overdue.load(Ordering::Relaxed), self.returned.load(Ordering::Relaxed))
    }
}

impl Scheduler for TestScheduler {
    fn accept(self: Arc<Self>, _server: &Arc<Server>) -> io::Result<()> {
        unreachable!("the test runs the loop")
    }

    fn stage(&self, next: Next) -> Placement {
        match (self.place, next) {
            (Placement::Spawn, Next::Response(ResponseKind::Dynamic)) => Placement::Spawn,
            (Placement::Spawn, _) => Placement::SameThread,
            (place, _) => place,
        }
    }

    fn spawn(&self, task: Task) -> Result<(), Task> {
        let mut waiting = self.waiting();
        if waiting.len() == self.most_waiting {
            return Err(task);
        }
        waiting.push(task);
        Ok(())
    }

    fn withdraw(&self, ticket: &Ticket) -> Option<Task> {
        let mut waiting = self.waiting();
        let index = waiting.iter().position(|task| task.ticket() == ticket)?;
        Some(waiting.remove(index))
    }

    fn on_overdue(&self) {
        self.overdue.fetch_add(1, Ordering::Relaxed);
    }

    fn on_returned(&self) {
        self.returned.fetch_add(1, Ordering::Relaxed);
    }

    fn load(&self) -> f32 {
        0.0
    }

    fn is_overloaded(&self) -> bool {
        self.is_overloaded.load(Ordering::Relaxed)
    }
}

/// A loop, and what a test needs of its surroundings.
struct Fixture {
    event_loop: EventLoop,
    server: Arc<Server>,
    scheduler: Arc<TestScheduler>,
    runtime: LocalRuntime,
}

impl Fixture {
    fn new(place: Placement, settings: Settings) -> Self {
        Self::with(place, settings, |_server| {})
    }

    fn with(place: Placement, settings: Settings, prepare: impl FnOnce(&Server)) -> Self {
        let listener = Listen::on("127.0.0.1:0".parse().unwrap());
        let listeners = vec![Listen { tls: settings.tls.is_some(), ..listener }];
        let settings = Settings { listeners, ..settings };
        let server = Arc::new(Server::open(settings, Arc::new(TestProgram), None).unwrap());
        prepare(&server);
        let scheduler = Arc::new(TestScheduler {
            place,
            waiting: Mutex::default(),
            most_waiting: 4,
            overdue: AtomicUsize::new(0),
            returned: AtomicUsize::new(0),
            is_overloaded: AtomicBool::new(false),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        let clock = Rc::new(Clock::told(1_795_208_400));
        let parts = (Kernel::new().unwrap(), clock);
        let own: Arc<dyn Scheduler> = Arc::<TestScheduler>::clone(&scheduler);
        let event_loop = EventLoop::open(Arc::clone(&server), own, 0, parts).unwrap();
        Self { event_loop, server, scheduler, runtime }
    }

    /// A client from this machine.
    fn connect(&mut self) -> Client {
        self.connect_from(ClientAddress::UNIX)
    }

    fn connect_from(&mut self, peer: ClientAddress) -> Client {
        let (socket, stream) = UnixStream::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        self.server.census.enter(peer).unwrap();
        let before = self.event_loop.slab.tokens();
        self.event_loop.adopt(socket.into(), peer);
        let tokens = self.event_loop.slab.tokens();
        let token = tokens.into_iter().find(|token| !before.contains(token)).unwrap();
        Client { stream, token }
    }

    /// Runs a turn for the events that are ready, and the tasks that they start.
    fn turn(&mut self) {
        let Self { event_loop, runtime, .. } = self;
        runtime.block_on(async {
            let mut batch = Vec::with_capacity(BATCH);
            let events = event_loop.poll(&mut batch, Wait::Never).unwrap();
            event_loop.guarded_turn(events);
            tokio::task::yield_now().await;
        });
    }

    /// Runs a turn after this time, in which the loop handles deadlines. It checks each connection,
    /// without the imprecision of the wheel.
    fn pass(&mut self, time: Duration) {
        self.event_loop.context.clock.advance(time);
        self.event_loop.has_due = true;
        let tokens = self.event_loop.slab.tokens();
        self.runtime.block_on(async {
            for token in tokens {
                self.event_loop.check_deadline(token.index);
            }
        });
        self.turn();
    }

    fn connection(&mut self, client: &Client) -> &mut Connection<crate::transport::Nonblocking> {
        &mut self.event_loop.slab.get(client.token).unwrap().connection
    }

    fn is_open(&mut self, client: &Client) -> bool {
        self.event_loop.slab.get(client.token).is_some()
    }

    /// The time until the deadline of the client's connection.
    fn left(&mut self, client: &Client) -> Duration {
        let now = self.event_loop.context.clock.now();
        self.connection(client).deadline.since(now)
    }

    /// The number of closed connections for this reason.
    fn closed(&self, reason: &str) -> u64 {
        let metrics = self.server.metrics();
        metrics.closed.iter().find(|(name, _)| *name == reason).unwrap().1
    }
}

struct Client {
    stream: UnixStream,
    token: Token,
}

impl Client {
    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    fn get(&mut self, path: &str) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    /// The bytes that have arrived, as text.
    fn received(&mut self) -> String {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
            _ => String::from_utf8(bytes).unwrap(),
        }
    }

    /// Status and content of each response that has arrived.
    fn replies(&mut self) -> String {
        let text = self.received();
        let mut replies = text.split("HTTP/1.1 ");
        assert_eq!(replies.next(), Some(""), "bytes before the first response: {text}");
        let replies = replies.map(|reply| {
            let (head, content) = reply.split_once("\r\n\r\n").unwrap_or((reply, "(cut)"));
            format!("{} {}", &head[..3], content.trim_end())
        });
        replies.collect::<Vec<_>>().join(", ")
    }
}

fn remote(host: u8) -> ClientAddress {
    ClientAddress::tcp(([192, 0, 2, host], 1000).into())
}

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}
