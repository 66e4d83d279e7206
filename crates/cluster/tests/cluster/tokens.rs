//! Users of a NATS server in operator mode: JWTs that an account has signed.

use nkeys::KeyPair;
use serde_json::{Value, json};

/// An operator with one account for nodes, and one for the server itself.
pub(crate) struct Operator {
    key: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl Operator {
    pub(crate) fn new() -> Self {
        Self {
            key: KeyPair::new_operator(),
            account: KeyPair::new_account(),
            system: KeyPair::new_account(),
        }
    }

    /// The configuration of a server that knows the accounts.
    pub(crate) fn configuration(&self) -> String {
        let own = sign(&self.key, &self.key, "operator", json!({}));
        let (account, system) = (self.account.public_key(), self.system.public_key());
        let accounts = [(&account, true), (&system, false)].map(|(id, stores)| {
            let storage = if stores { -1 } else { 0 };
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
                "conn": -1, "leaf": -1, "mem_storage": storage, "disk_storage": storage,
                "streams": storage, "consumer": storage,
            });
            let key = if stores { &self.account } else { &self.system };
            let jwt = sign(&self.key, key, "account", json!({ "limits": limits }));
            format!("  {id}: {jwt}\n")
        });
        format!(
            "operator: {own}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n{}}}\n",
            accounts.concat()
        )
    }

    /// Issues a file of credentials for a new user of the account.
    pub(crate) fn issue(&self) -> String {
        let (jwt, seed) = self.issue_for_key();
        credentials_file(&jwt, &seed)
    }

    /// Issues the JWT of a new user, and returns it with the seed of the user's key.
    pub(crate) fn issue_for_key(&self) -> (String, String) {
        let user = KeyPair::new_user();
        let limits = json!({ "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {} });
        (sign(&self.account, &user, "user", limits), user.seed().unwrap())
    }
}

pub(crate) fn credentials_file(jwt: &str, seed: &str) -> String {
    format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )
}

/// Signs the claims of `subject`.
fn sign(issuer: &KeyPair, subject: &KeyPair, kind: &str, mut claims: Value) -> String {
    claims["type"] = kind.into();
    claims["version"] = 2.into();
    let body = json!({
        "jti": "test", "iat": 1_700_000_000, "iss": issuer.public_key(), "sub": subject.public_key(),
        "name": kind, "nats": claims,
    });
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let text = [head, body].map(|part| base64url(part.to_string().as_bytes())).join(".");
    let signature = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", base64url(&signature))
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = [0, 1, 2].map(|place| u32::from(chunk.get(place).copied().unwrap_or(0)));
        let bits = all[0] << 16 | all[1] << 8 | all[2];
        for place in 0..=chunk.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}
