//! Tests of the addresses on which `bine` listens, and of its messages for addresses that fail.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use crate::harness::{Folder, KINDS, Peer, Program};
use crate::{bine, run};

#[test]
fn suggests_remedy_if_port_is_in_use() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let ended = run(&["--listen", &address.to_string()]);
    assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""));
    assert_eq!(
        ended.errors,
        format!(
            "bine: cannot listen on http://{address}/: Address already in use (os error 98); another \
             program uses it: stop that program or choose another address with --listen\n"
        )
    );
}

#[test]
fn serves_every_address_and_removes_socket_file() {
    for scheduler in KINDS {
        let folder = Folder::new();
        let path = folder.join("socket");
        let unix = format!("unix:{}", path.display());
        let mut program = Program::start(&mut bine(&[
            "--scheduler",
            scheduler,
            "--listen",
            "127.0.0.1:0,backlog=16,nodelay=off,send-buffer=32k",
            "--listen",
            "127.0.0.1:0",
            "--listen",
            &unix,
        ]));
        let second = program.await_address();
        assert_eq!(program.await_address(), unix);
        let second = second.strip_prefix("http://").unwrap().strip_suffix('/').unwrap();
        assert_eq!(program.connect().get("/hop.svg").status(), 200);
        assert_eq!(Peer::tcp(second.parse().unwrap()).get("/hop.svg").status(), 200);
        let mut peer = Peer::unix(&path);
        for _ in 0..2 {
            assert_eq!(peer.get("/hello?name=unix").status(), 200);
        }
        assert_eq!(program.stop().code, Some(0));
        assert!(!path.exists(), "{scheduler}");
    }
}

#[test]
fn replaces_socket_file_of_crashed_server() {
    let folder = Folder::new();
    let path = folder.join("socket");
    let unix = format!("unix:{}", path.display());
    Program::start(&mut bine(&["--listen", &unix])).kill();
    assert!(path.exists(), "a killed program cannot remove its socket");
    let program = Program::start(&mut bine(&["--listen", &unix]));
    assert_eq!(Peer::unix(&path).get("/").status(), 200);
    // A socket that answers is not replaced, nor is a file that is no socket.
    let ended = run(&["--listen", &unix]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("another program uses it"), "{}", ended.errors);
    assert_eq!(Peer::unix(&path).get("/").status(), 200);
    drop(program);
    let file = folder.write("file", b"somebody's");
    let ended = run(&["--listen", &format!("unix:{}", file.display())]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.errors.contains("a file with this name exists"), "{}", ended.errors);
    assert_eq!(std::fs::read(file).unwrap(), b"somebody's");
}

/// Starts the program as systemd does: the listening sockets are descriptors from 3 on.
fn activated(socket: OwnedFd, options: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_bine")]).args(options);
    command.stdin(Stdio::from(socket));
    command
}

#[test]
fn takes_over_socket_of_service_manager() {
    for scheduler in KINDS {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        // Socket activation also serves clients that connect before the program runs.
        let mut early = Peer::tcp(address);
        early.send("GET /hello?name=early HTTP/1.1\r\nHost: a\r\n\r\n");
        let options = ["--scheduler", scheduler];
        let program = Program::start(&mut activated(socket.into(), &options));
        assert_eq!(program.address(), address);
        assert_eq!(early.reply().status(), 200);
        assert_eq!(program.connect().get("/").status(), 200);
        assert_eq!(program.stop().code, Some(0), "{scheduler}");
    }
}

#[test]
fn keeps_socket_file_of_service_manager() {
    let folder = Folder::new();
    let path = folder.join("socket");
    let socket = UnixListener::bind(&path).unwrap();
    let program = Program::start(&mut activated(socket.into(), &[]));
    // The message shows the path that operators know, not `inherited descriptor 3`.
    assert_eq!(program.addresses(), [format!("unix:{}", path.display())]);
    assert_eq!(Peer::unix(&path).get("/").status(), 200);
    assert_eq!(program.stop().code, Some(0));
    assert!(path.exists(), "the file belongs to the service manager");
}

/// Rejects descriptors that do not listen. A datagram socket in a unit's socket file was once used
/// as a listener: each accept failed at once and was retried, which occupied a whole processor.
#[test]
fn rejects_descriptors_that_do_not_listen() {
    let datagrams = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    for wrong in [datagrams, connected.into(), file.into()] {
        let ended = Program::run(&mut activated(wrong, &[]));
        assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""), "{ended:?}");
        assert_eq!(
            ended.errors,
            "bine: cannot listen on inherited descriptor 3: it is not a listening stream socket; \
             its socket unit must set ListenStream= and Accept=no\n"
        );
    }
}

#[test]
fn ignores_descriptors_for_another_process() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut command = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_PID=1 LISTEN_FDS=1 exec \"$@\"";
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_bine"), "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::from(OwnedFd::from(socket)));
    let program = Program::start(&mut command);
    assert_ne!(program.address(), address);
    assert_eq!(program.connect().get("/").status(), 200);
}
