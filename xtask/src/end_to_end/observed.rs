//! Checks what other programs observe of a server: an analyzer of logs, the kernel's list of the
//! server's threads, and a tracer of system calls.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::program::Program;
use super::tracer::Tracer;
use super::work_folder;
use crate::report::Tally;
use crate::{paths, process};

/// The number of kept connections. Each has had a response.
const IDLE: usize = 2000;

/// The length of the file whose sending is traced: more than a socket takes at once.
const LENGTH: usize = 8 << 20;

pub(super) fn check(tally: &mut Tally) -> Result<()> {
    let folder = work_folder().join("observed");
    fs::create_dir_all(folder.join("site"))?;
    fs::write(folder.join("site/short.txt"), "short\n")?;
    fs::write(folder.join("site/long.bin"), vec![b'l'; LENGTH])?;
    tally.check("an analyzer of logs reads the access log", analyzer_reads_the_log(&folder));
    tally.check("idle connections add no thread", idle_connections_add_no_thread(&folder));
    tally.check("a file is sent by the kernel, without a copy", kernel_sends_a_file(&folder));
    Ok(())
}

fn serve(folder: &Path, options: &[&str]) -> Result<Program> {
    let mut command = Command::new(paths::release("bine"));
    command.arg("serve").arg(folder.join("site")).args(["--listen", "127.0.0.1:0"]).args(options);
    Program::start(command)
}

/// The analyzer `goaccess` finds each request in both formats that it knows, with its status.
fn analyzer_reads_the_log(folder: &Path) -> Result<()> {
    let (found, missing) = (30_u64, 7_u64);
    for (format, name) in [("combined", "COMBINED"), ("common", "COMMON")] {
        let (log, report) = (folder.join(format), folder.join("report.json"));
        let _ = fs::remove_file(&log);
        let path = log.to_str().context("the target folder has a name that is no text")?;
        let server = serve(folder, &["--access-log", path, "--access-log-format", format])?;
        let fields =
            "User-Agent: Mozilla/5.0 (X11; Linux) Test/1\r\nReferer: http://a.example/b?c\r\n";
        for _ in 0..found {
            ensure!(server.ask_with("GET", "/short.txt?q=a%20b", fields)?.status() == 200);
        }
        for _ in 0..missing {
            ensure!(server.ask_with("GET", "/missing", fields)?.status() == 404);
        }
        server.end()?;
        let mut analyzer = Command::new("goaccess");
        analyzer.arg(&log).args(["--no-global-config", "--no-progress"]);
        analyzer.arg(format!("--log-format={name}")).arg("--output").arg(&report);
        // It takes a standard input that is not a terminal for a second log.
        process::run(analyzer.stdin(Stdio::null()))?;
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&report)?)?;
        let general = &report["general"];
        let read = ["total_requests", "valid_requests", "failed_requests"]
            .map(|field| general[field].as_u64().unwrap_or(u64::MAX));
        let all = found + missing;
        ensure!(read == [all, all, 0], "{format}: {general}");
        let not_found = &report["not_found"]["metadata"]["hits"]["total"]["value"];
        ensure!(*not_found == missing, "{format}: {not_found} of {missing} missing files");
    }
    Ok(())
}

fn idle_connections_add_no_thread(folder: &Path) -> Result<()> {
    let server = serve(folder, &[])?;
    ensure!(server.get("/short.txt")?.status() == 200);
    let tasks = format!("/proc/{}/task", server.id());
    let threads = || Ok::<_, anyhow::Error>(fs::read_dir(&tasks)?.count());
    let before = threads()?;
    let mut kept = Vec::new();
    for _ in 0..IDLE {
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(b"GET /short.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = Vec::new();
        let mut piece = [0; 1024];
        while !answer.ends_with(b"short\n") {
            let count = stream.read(&mut piece)?;
            ensure!(count > 0, "the server closed connection {}", kept.len());
            answer.extend_from_slice(&piece[..count]);
        }
        kept.push(stream);
    }
    let with_connections = threads()?;
    ensure!(with_connections <= before, "{before} threads, {with_connections} with connections");
    drop(kept);
    server.end()
}

/// The tracer counts the bytes of `sendfile`. The server must not read the file's content itself.
fn kernel_sends_a_file(folder: &Path) -> Result<()> {
    let server = serve(folder, &[])?;
    let trace = folder.join("trace");
    let path = trace.to_str().context("the target folder has a name that is no text")?;
    let calls = "trace=sendfile,read,pread64,readv,preadv2,mmap";
    let tracer = Tracer::attach(server.id(), &["-e", calls, "-o", path])?;
    let answer = server.get("/long.bin");
    ensure!(tracer.detach()?, "the tracer ended early");
    let answer = answer?;
    ensure!(answer.body().len() == LENGTH, "{} bytes", answer.body().len());
    let trace = fs::read_to_string(&trace)?;
    let sent = bytes_of(&trace, "sendfile(");
    ensure!(sent == LENGTH, "{sent} of {LENGTH} bytes by sendfile");
    let read: usize =
        ["read(", "pread64(", "readv(", "preadv2("].map(|call| bytes_of(&trace, call)).iter().sum();
    ensure!(read < LENGTH / 100, "{read} bytes were read");
    server.end()
}

/// The sum of the results of a system call in the output of strace.
fn bytes_of(trace: &str, call: &str) -> usize {
    trace
        .lines()
        .filter(|line| {
            // The number of the thread precedes the call. An interrupted call is continued by
            // `<... sendfile resumed>`.
            let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
            let name = call.trim_end_matches('(');
            rest.starts_with(call) || rest.starts_with(&format!("<... {name} resumed>"))
        })
        .filter_map(|line| line.rsplit_once(" = ")?.1.split(' ').next()?.parse::<usize>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_the_results_of_a_call() {
        let trace = "71 sendfile(9, 11, [0] => [1024], 1048576) = 1024\n\
                     71 sendfile(9, 11, [1024], 1048576) = -1 EAGAIN (Resource temporarily unavailable)\n\
                     72 sendfile(9, 11, [1024] <unfinished ...>\n\
                     71 read(5, \"sendfile(\", 64) = 9\n\
                     72 <... sendfile resumed> => [1030], 1048576) = 6\n";
        assert_eq!((bytes_of(trace, "sendfile("), bytes_of(trace, "read(")), (1030, 9));
        assert_eq!(bytes_of(trace, "pread64("), 0);
    }
}
