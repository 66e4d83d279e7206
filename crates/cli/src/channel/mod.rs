//! The command `bine channel`: manages, publishes to and follows the channels of a running server
//! over HTTP.

mod arguments;
mod follow;
mod manage;
mod publish;
mod server;
mod terminal;
mod token;

use std::ffi::OsString;

use bine::Exit;

use arguments::ChannelArguments;
use server::{OPTIONS, Server};

const USAGE: &str = "\
Usage: bine channel create [NAME]      create a channel
       bine channel renew NAME         extend the time to live of a channel
       bine channel publish NAME DATA  publish a message
       bine channel follow NAME        print messages as they come
       bine channel close NAME         close a channel to further messages
       bine channel list               list channels with their sizes
       bine channel delete NAME        delete a channel and its messages
       bine channel token              sign an access token for followers and publishers

Each command has --help. The server is the one that `bine status` reports, else
http://127.0.0.1:8080, unless --server URL or BINE_SERVER names another; --token TOKEN or
BINE_TOKEN authenticates the request.";

const CREATE: &str = "\
Usage: bine channel create [NAME] [OPTION]...

Creates a channel and prints its name, its last cursor, and when it expires. Without NAME the channel
gets a random name, and by default expires a day after the last publication. Creating it again with the
same options succeeds.

  --type TYPE        media type of all messages; default text/plain
  --ttl TIME         expire that long after the last read or write: 90s, 15m, 2h, 7d
  --publishers       only publishing extends the time to live
  --keep N           retain the newest N messages; default 10000
  --keep-bytes N     retain messages of at most N bytes in total; default 32 MiB
  --keep-for TIME    retain messages for that long; default 7d
  --keep-all         retain all messages; a message that exceeds the channel's quota is refused
  --durability WORD  when a publication is acknowledged: memory, interval or commit
  --server URL       the server
  --token TOKEN      the access token

  bine channel create weather --ttl 7d --keep 1000
  bine channel create rooms/1 --type application/json";

const RENEW: &str = "\
Usage: bine channel renew NAME [OPTION]...

Extends the time to live of a channel, as a publication does, and prints what `create` prints.

  --ttl TIME      new time to live, counted from the last read or write
  --publishers    only publishing extends the time to live
  --server URL    the server
  --token TOKEN   the access token";

const PUBLISH: &str = "\
Usage: bine channel publish NAME... DATA [OPTION]...

Publishes DATA once to one or more channels, and prints its cursor. DATA is the last argument; - reads
it from standard input.

  --lines         publish each line of standard input as a message, as it arrives
  --type TYPE     media type of the message, which must match the channel's if that has one; with
                  application/json DATA must be a JSON value
  --event NAME    name of the message's event
  --id ID         id of your choice: a message with the same id within two minutes is stored only once
  --server URL    the server
  --token TOKEN   the access token

  bine channel publish news 'It climbs.'
  bine channel publish measured '{\"rain\": 3}' --type application/json --event hourly
  tail -F access.log | bine channel publish log - --lines";

const FOLLOW: &str = "\
Usage: bine channel follow NAME... [OPTION]...

Prints the data of each message of one or more channels, in one order and each message once, until the
channels are closed. After a failed connection it reconnects and continues behind the last message.
Messages that were dropped before they could be printed are reported on standard error.

  --after PLACE   begin behind a cursor, at `earliest`, or at a time in milliseconds since 1970;
                  default now
  --json          print messages with all their fields, as lines of JSON
  --count N       exit after N messages
  --server URL    the server
  --token TOKEN   the access token

  bine channel follow news weather --json
  bine channel follow news --after earliest";

const CLOSE: &str = "\
Usage: bine channel close NAME [OPTION]...

Closes a channel to further messages. Its messages remain, and followers learn that no more will come.

  --server URL    the server
  --token TOKEN   the access token";

const LIST: &str = "\
Usage: bine channel list [OPTION]...

Prints the channels that the token may manage: bytes, number of messages, creator (- is the server's
program), and name.

  --by WORD       sort by name, or by size with the largest first; default name
  --limit N       print at most N channels; default 100, at most 1000
  --after NAME    sorted by name: begin behind this name
  --server URL    the server
  --token TOKEN   the access token

  bine channel list --by size --limit 10";

const DELETE: &str = "\
Usage: bine channel delete NAME [OPTION]...

Deletes a channel and its messages. Followers learn that it is gone.

  --server URL    the server
  --token TOKEN   the access token";

/// Runs `bine channel COMMAND`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let Some((word, rest)) = arguments.split_first() else { return Exit::usage(USAGE) };
    let (usage, options): (_, &[&str]) = match word.to_str() {
        Some("create") => (CREATE, &manage::CREATE_OPTIONS),
        Some("renew") => (RENEW, &["--ttl=", "--publishers"]),
        Some("publish") => (PUBLISH, &["--lines", "--type=", "--event=", "--id="]),
        Some("follow") => (FOLLOW, &["--after=", "--json", "--count="]),
        Some("close") => (CLOSE, &[]),
        Some("list") => (LIST, &["--by=", "--limit=", "--after="]),
        Some("delete") => (DELETE, &[]),
        Some("token") => return token::run(rest),
        Some("--help" | "-h") => return print_text(USAGE),
        _ => {
            let message = "bine: unknown command of `bine channel`; use create, renew, publish, follow, \
                           close, list, delete or token";
            return Exit::usage(format!("{message}\n{USAGE}"));
        }
    };
    let wrong = |message: String| Exit::usage(format!("bine: {message}\n{usage}"));
    let arguments = match ChannelArguments::read(rest, &[options, &OPTIONS].concat()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return print_text(usage),
        Err(message) => return wrong(message),
    };
    if arguments.positional.is_empty() && usage != CREATE && usage != LIST {
        return Exit::usage(usage);
    }
    let server = match Server::from_arguments(&arguments) {
        Ok(server) => server,
        Err(message) => return wrong(message),
    };
    let result = match word.to_str() {
        Some("create") => manage::create(&server, &arguments),
        Some("renew") => manage::renew(&server, &arguments),
        Some("publish") => publish::publish(&server, &arguments),
        Some("follow") => follow::follow(&server, &arguments),
        Some("list") => manage::list(&server, &arguments),
        Some("delete") => manage::delete(&server, &arguments),
        _ => manage::close(&server, &arguments),
    };
    match result {
        Ok(()) => Exit::success(),
        Err(message) => Exit::failure(message),
    }
}

fn print_text(usage: &str) -> Exit {
    println!("{usage}");
    Exit::success()
}
