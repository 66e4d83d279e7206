//! The option `--quick`: a trial of about two minutes, without the time to build.

use anyhow::{Result, bail};

/// The options that a trial of an experiment stands for.
const TRIALS: [(&str, &str); 18] = [
    ("arena", "--rounds 1 --seconds 1"),
    (
        "board",
        "--rounds 1 --seconds 1 --deliveries 20000 --only bine,axum-sqlite,axum-postgres --cases plaintext,db,fortunes,updates,fan-100",
    ),
    ("commits", "--copies 1 --syncs default --commits 5000"),
    (
        "cost",
        "--rounds 1 --seconds 1 --scenarios kept-64,pipelined-16,calls-1,page-984,file-984,file-64k,tls-984",
    ),
    ("fanout", "--rounds 1 --messages 10"),
    ("fremlin", "--rounds 1"),
    (
        "hop",
        "--rounds 1 --seconds 1 --rates 800,3200 --contents file,page --only bine-hybrid,nginx,varnish,hyper",
    ),
    ("hop-io", "--rounds 1 --requests 100 --seconds 1"),
    (
        "marlow",
        "--rounds 1 --seconds 1 --rates 500,2000,6000,18000 --parts load,garbage --flood-rates 2000 --only bine,nginx,apache",
    ),
    ("memory", "--connections 5000 --starts 5"),
    ("overload", FLAG),
    ("proxy", "--rounds 1 --seconds 1"),
    ("push", FLAG),
    ("push-nodes", "--rounds 1 --peers 500,4000 --messages 3"),
    ("recorders", "--rounds 2 --seconds 1"),
    ("schedulers", "--rounds 1 --seconds 1 --loads kept-64,calls-1,document"),
    ("scripts", "--rounds 1 --seconds 1"),
    ("workers", "--rounds 1 --seconds 2 --workers 10,64"),
];

/// The name of the option. It stands for itself where a trial differs in more than its options.
const FLAG: &str = "--quick";

/// Replaces `--quick` in the options of `command` by what it stands for. Other options take
/// precedence.
///
/// # Errors
///
/// The command has no trial.
pub(crate) fn expand(command: &str, words: Vec<String>) -> Result<Vec<String>> {
    if !words.iter().any(|word| word == FLAG) {
        return Ok(words);
    }
    let Some((_, trial)) = TRIALS.iter().find(|(name, _)| *name == command) else {
        let names: Vec<&str> = TRIALS.iter().map(|(name, _)| *name).collect();
        bail!("`{command}` has no --quick; these have: {}", names.join(", "));
    };
    let own = words.into_iter().filter(|word| word != FLAG);
    Ok(trial.split(' ').map(str::to_owned).chain(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(command: &str, words: &str) -> Result<String> {
        let words = words.split_whitespace().map(str::to_owned).collect();
        expand(command, words).map(|words| words.join(" "))
    }

    #[test]
    fn replaces_the_flag_and_puts_own_options_last() {
        assert_eq!(expanded("proxy", "--quick").unwrap(), "--rounds 1 --seconds 1");
        let own = "--rounds 1 --seconds 1 --rounds 3 --only bine";
        assert_eq!(expanded("proxy", "--rounds 3 --quick --only bine").unwrap(), own);
        assert_eq!(expanded("proxy", "--rounds 3").unwrap(), "--rounds 3");
        assert_eq!(expanded("overload", "--tls --quick").unwrap(), "--quick --tls");
    }

    #[test]
    fn names_the_commands_that_have_a_trial() {
        let error = expanded("frames", "--quick").unwrap_err().to_string();
        assert!(error.starts_with("`frames` has no --quick; these have: arena, board,"), "{error}");
    }
}
