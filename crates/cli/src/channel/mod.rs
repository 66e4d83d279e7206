//! Decides what the program does with the channels of a running server: it is one more who asks over HTTP.

mod arguments;
mod follow;
mod life;
mod publish;
mod server;
mod terminal;
mod token;

use std::ffi::OsString;

use bine::Exit;

use arguments::Arguments;
use server::{OPTIONS, Server};

const USAGE: &str = "\
Usage: bine channel create [NAME]      make a channel
       bine channel renew NAME         put off when a channel goes by itself
       bine channel publish NAME DATA  publish a message
       bine channel follow NAME        print messages as they come
       bine channel close NAME         let a channel take no more
       bine channel list               print channels with what they hold
       bine channel delete NAME        remove a channel with all that it holds
       bine channel token              sign a token for somebody who follows or publishes

Each says more with --help. The server is the one that `bine status` tells of, else
http://127.0.0.1:8080, unless --server URL or BINE_SERVER names another; --token TOKEN or
BINE_TOKEN says who asks.";

const CREATE: &str = "\
Usage: bine channel create [NAME] [OPTION]...

Makes a channel and prints its name, its last cursor, and when it goes by itself. Without NAME it gets one
that nobody guesses, and goes a day after the last publication unless something else is said. To make
it again with the same options is no mistake.

  --type TYPE        the media type of all its messages; text/plain if nothing is said
  --ttl TIME         it goes that long after the last read or write: 90s, 15m, 2h, 7d
  --publishers       only publishing puts that off
  --keep N           so many messages stay, the newest; else 10000
  --keep-bytes N     messages of so many bytes stay; else 32 MiB
  --keep-for TIME    messages stay for so long; else 7d
  --keep-all         all stay; what exceeds the channel's quota is refused
  --durability WORD  when a publication is acknowledged: memory, interval or commit
  --server URL       the server
  --token TOKEN      who asks

  bine channel create weather --ttl 7d --keep 1000
  bine channel create rooms/1 --type application/json";

const RENEW: &str = "\
Usage: bine channel renew NAME [OPTION]...

Puts off when a channel goes by itself, as a publication does, and prints what `create` prints.

  --ttl TIME      from now on it goes that long after the last read or write
  --publishers    only publishing puts that off
  --server URL    the server
  --token TOKEN   who asks";

const PUBLISH: &str = "\
Usage: bine channel publish NAME... DATA [OPTION]...

Publishes DATA in one or more channels, once, and prints its cursor. DATA is the last word; - reads it
from standard input.

  --lines         each line of standard input is a message, published as it comes
  --type TYPE     its media type, which must be the channel's if that has one; application/json: DATA
                  is a JSON value
  --event NAME    the name of its event
  --id ID         an id of your own: what has it again within two minutes is not taken twice
  --server URL    the server
  --token TOKEN   who asks

  bine channel publish news 'It climbs.'
  bine channel publish measured '{\"rain\": 3}' --type application/json --event hourly
  tail -F access.log | bine channel publish log - --lines";

const FOLLOW: &str = "\
Usage: bine channel follow NAME... [OPTION]...

Prints the data of each message of one or more channels in one order, each message once, until they
are closed. A connection that breaks is made again, and goes on behind the last message. Messages
that are gone before they could be printed are told on standard error.

  --after PLACE   begin behind a cursor, at `earliest`, or at a time in milliseconds since 1970;
                  else now
  --json          print all there is to know of a message, as a line of JSON
  --count N       end after so many messages
  --server URL    the server
  --token TOKEN   who asks

  bine channel follow news weather --json
  bine channel follow news --after earliest";

const CLOSE: &str = "\
Usage: bine channel close NAME [OPTION]...

Lets a channel take no more. What it holds stays, and whoever follows it is told that this is all.

  --server URL    the server
  --token TOKEN   who asks";

const LIST: &str = "\
Usage: bine channel list [OPTION]...

Prints the channels that the token may manage: the bytes and the messages that each holds, who made it
(- is the program), and its name.

  --by WORD       name or size, the largest first; name if nothing is said
  --limit N       at most so many, 100 if nothing is said, 1000 at most
  --after NAME    by name: those behind this one
  --server URL    the server
  --token TOKEN   who asks

  bine channel list --by size --limit 10";

const DELETE: &str = "\
Usage: bine channel delete NAME [OPTION]...

Removes a channel with all that it holds. Whoever follows it is told that it is gone.

  --server URL    the server
  --token TOKEN   who asks";

/// Runs `bine channel ..`.
pub(crate) fn run(arguments: &[OsString]) -> Exit {
    let Some((word, rest)) = arguments.split_first() else { return Exit::usage(USAGE) };
    let (usage, options): (_, &[&str]) = match word.to_str() {
        Some("create") => (CREATE, &life::MAKING),
        Some("renew") => (RENEW, &["--ttl=", "--publishers"]),
        Some("publish") => (PUBLISH, &["--lines", "--type=", "--event=", "--id="]),
        Some("follow") => (FOLLOW, &["--after=", "--json", "--count="]),
        Some("close") => (CLOSE, &[]),
        Some("list") => (LIST, &["--by=", "--limit=", "--after="]),
        Some("delete") => (DELETE, &[]),
        Some("token") => return token::run(rest),
        Some("--help" | "-h") => return printed(USAGE),
        _ => {
            let message = "bine: a channel is created, renewed, published in, followed, closed, \
                           listed or deleted, and a token signed";
            return Exit::usage(format!("{message}\n{USAGE}"));
        }
    };
    let wrong = |message: String| Exit::usage(format!("bine: {message}\n{usage}"));
    let arguments = match Arguments::read(rest, &[options, &OPTIONS].concat()) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => return printed(usage),
        Err(message) => return wrong(message),
    };
    if arguments.words.is_empty() && usage != CREATE && usage != LIST {
        return Exit::usage(usage);
    }
    let server = match Server::of(&arguments) {
        Ok(server) => server,
        Err(message) => return wrong(message),
    };
    let done = match word.to_str() {
        Some("create") => life::create(&server, &arguments),
        Some("renew") => life::renew(&server, &arguments),
        Some("publish") => publish::publish(&server, &arguments),
        Some("follow") => follow::follow(&server, &arguments),
        Some("list") => life::list(&server, &arguments),
        Some("delete") => life::delete(&server, &arguments),
        _ => life::close(&server, &arguments),
    };
    match done {
        Ok(()) => Exit::fine(),
        Err(message) => Exit::failed(message),
    }
}

fn printed(usage: &str) -> Exit {
    println!("{usage}");
    Exit::fine()
}
