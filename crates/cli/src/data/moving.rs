//! The command `bine data move`: takes a data folder into a cluster, or out again.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Instant;

use bine::{ClusterLocation, Exit, MoveStep, MoveSummary, move_into_cluster, move_out_of_cluster};

use super::keys::DataFiles;
use super::progress::ProgressMeter;
use super::{count_text, journal_folder, print_text};

const USAGE: &str = "\
Usage: bine data move --data FOLDER --to URL[,URL]... [OPTION]...
       bine data move --from URL[,URL]... --data FOLDER [OPTION]...

Copies all tables, channels and sessions from the data folder of a server into a cluster, or from a
cluster into a new data folder. Then it reads the copy back, compares every row and message, and prints
what was moved. An interrupted move has no effect and can be repeated.

With --to, no server may use FOLDER, which stays as it is, and the cluster must have no data. Its nodes
start afterwards. With --from, FOLDER must be new or empty, and the cluster stays as it is. Stop its
nodes first, or their later changes are not in FOLDER. The move needs memory for all data twice.

  --data FOLDER    the data folder
  --to URL, --from URL
                   the NATS servers of the cluster, such as nats://127.0.0.1:4222
  --cluster-name NAME, --cluster-credentials FILE, --cluster-authority FILE,
  --cluster-certificate FILE, --cluster-certificate-key FILE
                   as the configuration keys of a node
  --cluster-copies N
                   with --to, the number of NATS servers that store each change: 1 (default), 3 or 5";

/// What the command has to do.
#[derive(PartialEq, Eq, Debug)]
struct MoveArguments {
    data: PathBuf,
    cluster: ClusterLocation,
    is_inward: bool,
}

/// The values of the options, as they are given.
#[derive(Default)]
struct GivenOptions {
    data: Option<OsString>,
    to: Option<OsString>,
    from: Option<OsString>,
    name: Option<OsString>,
    credentials: Option<OsString>,
    authority: Option<OsString>,
    certificate: Option<OsString>,
    certificate_key: Option<OsString>,
    copies: Option<OsString>,
}

/// Runs the command with the arguments after `move`.
pub(super) fn run(arguments: &[OsString]) -> Exit {
    let parsed = match MoveArguments::read(arguments) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return print_text(USAGE),
        Err(message) => return Exit::usage(format!("bine: {message}\n{USAGE}")),
    };
    let moved = if parsed.is_inward { move_in(&parsed) } else { move_out(&parsed) };
    match moved {
        Ok(()) => Exit::success(),
        Err(message) => Exit::failure(message),
    }
}

fn move_in(arguments: &MoveArguments) -> Result<(), String> {
    let MoveArguments { data, cluster, .. } = arguments;
    let journal = journal_folder(data);
    if !journal.is_dir() {
        return Err(format!("there are no tables in {}", data.display()));
    }
    let files = if journal == *data { DataFiles::default() } else { DataFiles::read(data)? };
    let begun = Instant::now();
    let mut meter = StepMeter::default();
    let moved = move_into_cluster(data, &journal, cluster, &mut |step, done, all| {
        meter.show(step, done, all);
    });
    drop(meter);
    let summary = moved?;
    for warning in &summary.warnings {
        eprintln!("bine: warning: {warning}");
    }
    print_summary(&summary, begun);
    if summary.has_new_epoch && summary.channels > 0 {
        println!(
            "cursors of channels are not valid any more, because the machine of the server had stopped without the server: clients read their channels from the start"
        );
    }
    let stays = |name: &str| println!("not moved: {}", data.join(name).display());
    let stored = files.stored.iter().map(|file| &*file.name);
    stored.filter(|name| *name != "session-keys").for_each(stays);
    files.others.iter().for_each(|name| stays(name));
    let name = cluster.name.as_ref().map(|name| format!(" --cluster-name {name}"));
    let (data, name) = (data.display(), name.unwrap_or_default());
    println!("{data} is as it was; start the nodes with --cluster {}{name}", shown(cluster));
    Ok(())
}

fn move_out(arguments: &MoveArguments) -> Result<(), String> {
    let MoveArguments { data, cluster, .. } = arguments;
    let begun = Instant::now();
    let mut meter = StepMeter::default();
    let moved = move_out_of_cluster(cluster, data, &mut |step, done, all| {
        meter.show(step, done, all);
    });
    drop(meter);
    let summary = moved?;
    print_summary(&summary, begun);
    if !summary.nodes.is_empty() {
        let position = summary.position;
        let nodes = summary.nodes.join(", ");
        eprintln!(
            "bine: warning: nodes of the cluster run ({nodes}): changes after position {position} of its stream are not in the folder"
        );
    }
    println!("the cluster is as it was; start a server with --data {}", data.display());
    Ok(())
}

fn print_summary(summary: &MoveSummary, begun: Instant) {
    let MoveSummary { tables, rows, bytes, channels, messages, session_keys, .. } = summary;
    let (tables, rows) = (count_text(*tables, "table"), count_text(*rows, "row"));
    let seconds = begun.elapsed().as_secs_f32();
    println!("moved and verified {tables} with {rows} ({bytes} bytes) in {seconds:.1} s");
    let (channels, messages) = (count_text(*channels, "channel"), count_text(*messages, "message"));
    let keys = count_text(*session_keys, "key");
    println!("moved and verified {channels} with {messages}, and {keys} of sessions");
}

/// The addresses of the servers, without passwords.
fn shown(cluster: &ClusterLocation) -> String {
    let shown = |address: &str| match address.rsplit_once('@') {
        None => address.to_owned(),
        Some((before, host)) => {
            let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
            format!("{scheme}://..@{host}")
        }
    };
    cluster.servers.split(',').map(shown).collect::<Vec<_>>().join(",")
}

/// The progress of one step after another.
#[derive(Default)]
struct StepMeter(Option<(MoveStep, ProgressMeter)>);

impl StepMeter {
    fn show(&mut self, step: MoveStep, done: u64, all: Option<u64>) {
        if self.0.as_ref().is_none_or(|(current, _)| *current != step) {
            let verb = match step {
                MoveStep::Read => "read",
                MoveStep::Write => "written",
                MoveStep::Verify => "verified",
            };
            // The previous meter ends its line first.
            self.0 = None;
            self.0 = Some((step, ProgressMeter::new(verb, all)));
        }
        if let Some((_, meter)) = &mut self.0 {
            meter.show(done, all);
        }
    }
}

impl MoveArguments {
    /// Parses the arguments. Returns `None` if help is requested.
    fn read(all: &[OsString]) -> Result<Option<Self>, String> {
        let mut given = GivenOptions::default();
        let mut rest = all.iter();
        while let Some(word) = rest.next() {
            let text = word.to_str().unwrap_or_default();
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsStr::new(value))),
                None => (text, None),
            };
            if matches!(name, "--help" | "-h") {
                return Ok(None);
            }
            let Some(option) = given.option(name) else {
                let word = word.display();
                return Err(format!("this command does not accept {word}"));
            };
            let value = value.or_else(|| rest.next().map(OsString::as_os_str));
            let value = value.filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| format!("{name} needs a value"))?;
            if option.replace(value.to_owned()).is_some() {
                return Err(format!("{name} is given twice"));
            }
        }
        given.parsed().map(Some)
    }
}

impl GivenOptions {
    fn option(&mut self, name: &str) -> Option<&mut Option<OsString>> {
        Some(match name {
            "--data" => &mut self.data,
            "--to" => &mut self.to,
            "--from" => &mut self.from,
            "--cluster-name" => &mut self.name,
            "--cluster-credentials" => &mut self.credentials,
            "--cluster-authority" => &mut self.authority,
            "--cluster-certificate" => &mut self.certificate,
            "--cluster-certificate-key" => &mut self.certificate_key,
            "--cluster-copies" => &mut self.copies,
            _ => return None,
        })
    }

    fn parsed(self) -> Result<MoveArguments, String> {
        let text = |value: OsString| {
            value.into_string().map_err(|_| "the value of an option must be UTF-8".to_owned())
        };
        let data = self.data.ok_or("--data must name the data folder")?;
        let (servers, is_inward) = match (self.to, self.from) {
            (Some(to), None) => (text(to)?, true),
            (None, Some(from)) => (text(from)?, false),
            _ => return Err("give either --to or --from, with the cluster's NATS servers".into()),
        };
        let copies = match self.copies.map(text).transpose()?.as_deref() {
            Some(_) if !is_inward => return Err("--cluster-copies needs --to".to_owned()),
            None | Some("1") => 1,
            Some("3") => 3,
            Some("5") => 5,
            Some(other) => return Err(format!("--cluster-copies {other}: use 1, 3 or 5")),
        };
        let cluster = ClusterLocation {
            servers,
            name: self.name.map(text).transpose()?,
            credentials: self.credentials.map(PathBuf::from),
            authority: self.authority.map(PathBuf::from),
            certificate: self.certificate.map(PathBuf::from),
            certificate_key: self.certificate_key.map(PathBuf::from),
            copies,
        };
        Ok(MoveArguments { data: Path::new(&data).to_owned(), cluster, is_inward })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &str) -> Result<Option<MoveArguments>, String> {
        let arguments: Vec<OsString> = arguments.split(' ').map(OsString::from).collect();
        MoveArguments::read(&arguments)
    }

    #[test]
    fn reads_both_directions() {
        let inward =
            read("--data d --to=nats://a:1,nats://b:1 --cluster-copies 3").unwrap().unwrap();
        let mut expected = MoveArguments {
            data: "d".into(),
            cluster: ClusterLocation {
                servers: "nats://a:1,nats://b:1".to_owned(),
                name: None,
                credentials: None,
                authority: None,
                certificate: None,
                certificate_key: None,
                copies: 3,
            },
            is_inward: true,
        };
        assert_eq!(inward, expected);
        let outward = "--from nats://a:1 --data d --cluster-name n --cluster-credentials c --cluster-authority=a --cluster-certificate e --cluster-certificate-key=k";
        expected.is_inward = false;
        expected.cluster = ClusterLocation {
            servers: "nats://a:1".to_owned(),
            name: Some("n".to_owned()),
            credentials: Some("c".into()),
            authority: Some("a".into()),
            certificate: Some("e".into()),
            certificate_key: Some("k".into()),
            copies: 1,
        };
        assert_eq!(read(outward).unwrap().unwrap(), expected);
        assert_eq!(read("--data d -h"), Ok(None));
    }

    #[test]
    fn reports_arguments_it_does_not_understand() {
        for (arguments, expected) in [
            ("--to nats://a", "--data must name the data folder"),
            ("--data d", "give either --to or --from"),
            ("--data d --to a --from b", "give either --to or --from"),
            ("--data d --to", "--to needs a value"),
            ("--data= --to a", "--data needs a value"),
            ("--data d --data e --to a", "--data is given twice"),
            ("d --to a", "does not accept d"),
            ("--data d --to a --into b", "does not accept --into"),
            ("--data d --to a --cluster-copies 2", "use 1, 3 or 5"),
            ("--data d --from a --cluster-copies 1", "--cluster-copies needs --to"),
        ] {
            let error = read(arguments).unwrap_err();
            assert!(error.contains(expected), "{arguments}: {error}");
        }
    }

    #[test]
    fn shows_addresses_without_passwords() {
        let servers = "nats://a:1,tls://user:secret@b:2".to_owned();
        let cluster = ClusterLocation {
            servers,
            name: None,
            credentials: None,
            authority: None,
            certificate: None,
            certificate_key: None,
            copies: 1,
        };
        assert_eq!(shown(&cluster), "nats://a:1,tls://..@b:2");
    }
}
