//! Tests tokens with the vectors of the RFCs, and with modified ones.

use std::slice;

use proptest::prelude::*;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};

use super::super::grant::ChannelAction;
use super::*;
use crate::base64::written;

/// The payload of RFC 7515, appendices A.1 to A.3.
const JOE: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
/// RFC 7515 appendix A.1.
const SHARED: &str =
    "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
const BY_SHARED: [&str; 3] = [
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
    JOE,
    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
];
/// RFC 7515 appendix A.2.
const MODULUS: &str = concat!(
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR",
    "T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB",
    "dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia",
    "GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
);
const RSA: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAofgWCuLjybRlzo0tZWJj
NiuSfb4p4fAkd/wWJcyQoTbji9k0l8W26mPddxHmfHQp+Vaw+4qPCJrcS2mJPMEz
P1Pt0Bm4d4QlL+yRT+SFd2lZS+pCgNMsD1W/YpRPEwOWvG6b32690r2jZ47soMZo
9wGzjb/7OMg0LOL+bSf63kpaSHSXndS5z5rexMdbBYUsLA9e+KXBdQOS+UTo7WTB
EMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6/I5IhlJH7aGhyxX
FvUK+DWNmoudF8NAco9/h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXp
oQIDAQAB
-----END PUBLIC KEY-----
";
const BY_RSA: [&str; 3] = [
    "eyJhbGciOiJSUzI1NiJ9",
    JOE,
    concat!(
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujG",
        "bds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K",
        "0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6",
        "LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    ),
];
/// RFC 7515 appendix A.3.
const CURVE: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
-----END PUBLIC KEY-----
";
const BY_CURVE: [&str; 3] = [
    "eyJhbGciOiJFUzI1NiJ9",
    JOE,
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
];
/// RFC 8037 appendix A.
const EDWARDS: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
-----END PUBLIC KEY-----
";
const BY_EDWARDS: [&str; 3] = [
    "eyJhbGciOiJFZERTQSJ9",
    "RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
];
const SECRET: &[u8] = b"a secret of thirty-two bytes or more";
/// In seconds since 1970.
const NOW: u64 = 1_800_000_000;

/// A token signed with [`SECRET`].
fn signed(head: &str, claims: &str) -> String {
    let text = format!("{}.{}", written(head.as_bytes()), written(claims.as_bytes()));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    let signature = hmac::sign(&key, text.as_bytes());
    format!("{text}.{}", written(signature.as_ref()))
}

fn read(tokens: &TokenVerifier, claims: &str) -> Result<ValidatedToken, String> {
    tokens.read(&signed("{\"alg\":\"HS256\"}", claims), NOW * 1000)
}

#[track_caller]
fn check(tokens: &TokenVerifier, claims: &str, expected: Result<(), &str>) {
    let claims = claims.replace("EXP", &(NOW + 60).to_string());
    let claims = claims.replace("IAT", &format!("\"iat\":{}", NOW - 60));
    let read = read(tokens, &claims).map(drop);
    match (&read, expected) {
        (Ok(()), Ok(())) => {}
        (Err(fault), Err(expected)) if fault.contains(expected) => {}
        _ => panic!("{claims}: {read:?}, not {expected:?}"),
    }
}

fn tokens_of_set(keys: &str) -> TokenVerifier {
    TokenVerifier::with(TokenKey::of_set(&format!("{{\"keys\":[{keys}]}}")))
}

fn keys_of_the_rfcs() -> [(TokenVerifier, [&'static str; 3]); 7] {
    let shared = base64::url(SHARED).unwrap();
    let rsa = format!("{{\"kty\":\"RSA\",\"e\":\"AQAB\",\"n\":\"{MODULUS}\"}}");
    let curve = r#"{"kty":"EC","crv":"P-256","kid":"one","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
    let edwards =
        r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    [
        (TokenVerifier::hs256(shared), BY_SHARED),
        (TokenVerifier::rs256(RSA), BY_RSA),
        (TokenVerifier::es256(CURVE), BY_CURVE),
        (TokenVerifier::eddsa(EDWARDS), BY_EDWARDS),
        (tokens_of_set(&rsa), BY_RSA),
        (tokens_of_set(&format!("{curve},{edwards}")), BY_CURVE),
        (tokens_of_set(&format!("{curve},{edwards}")), BY_EDWARDS),
    ]
}

#[test]
fn accepts_the_signatures_of_the_rfcs_and_rejects_modified_ones() {
    for (tokens, parts) in keys_of_the_rfcs() {
        assert_eq!(tokens.fault(), None);
        let told = tokens.claims(&parts.join("."));
        match parts[1] {
            JOE => assert_eq!(told.unwrap()["iss"], "joe"),
            // The signature is valid, but the payload is not JSON.
            _ => assert_eq!(told.unwrap_err(), "its claims are no JSON"),
        }
        let [head, claims, signature] = parts;
        let changed = format!("{head}.{}.{signature}", written(b"{\"sub\":\"eve\"}"));
        assert_eq!(tokens.claims(&changed).unwrap_err(), "its signature is wrong");
        let other = if signature.starts_with('d') { "e" } else { "d" };
        let changed = format!("{head}.{claims}.{other}{}", &signature[1..]);
        assert_eq!(tokens.claims(&changed).unwrap_err(), "its signature is wrong");
    }
}

#[test]
fn the_key_determines_the_algorithm() {
    let claims = format!("{{\"sub\":\"eve\",\"exp\":{}}}", NOW + 60);
    for (tokens, _) in keys_of_the_rfcs() {
        for head in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"None"}"#,
            "{}",
            r#"{"alg":null}"#,
            r#"{"alg":"HS512"}"#,
        ] {
            let told = tokens.claims(&signed(head, &claims)).unwrap_err();
            assert!(told.starts_with("no key here is for what its head says"), "{told}");
            let unsigned = format!("{}.{}.", written(head.as_bytes()), written(claims.as_bytes()));
            assert!(tokens.claims(&unsigned).is_err());
        }
    }
    // An HMAC with the public key as the secret (RFC 8725 section 2.1).
    for tokens in [TokenVerifier::rs256(RSA), TokenVerifier::es256(CURVE)] {
        let text = format!("{}.{}", written(br#"{"alg":"HS256"}"#), written(claims.as_bytes()));
        for known in [RSA, CURVE] {
            let key = hmac::Key::new(hmac::HMAC_SHA256, known.as_bytes());
            let signature = written(hmac::sign(&key, text.as_bytes()).as_ref());
            assert!(tokens.claims(&format!("{text}.{signature}")).is_err());
        }
    }
}

#[test]
fn accepts_tokens_of_other_issuers() {
    let random = SystemRandom::new();
    let claims = format!("{{\"sub\":\"ann\",\"iat\":{NOW},\"exp\":{}}}", NOW + 60);
    let token = |algorithm: &str, sign: &dyn Fn(&[u8]) -> Vec<u8>| {
        let head = format!("{{\"alg\":\"{algorithm}\",\"kid\":\"one\"}}");
        let text = format!("{}.{}", written(head.as_bytes()), written(claims.as_bytes()));
        format!("{text}.{}", written(&sign(text.as_bytes())))
    };
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let curve = format!(
        "{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{}\",\"y\":\"{}\",\"kid\":\"one\"}}",
        written(x),
        written(y)
    );
    let by_curve = token("ES256", &|text| pair.sign(&random, text).unwrap().as_ref().to_vec());
    let made = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap();
    let x = written(pair.public_key().as_ref());
    let edwards = format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"{x}\"}}");
    let by_edwards = token("EdDSA", &|text| pair.sign(text).as_ref().to_vec());
    let both = tokens_of_set(&curve).or(tokens_of_set(&edwards));
    for token in [&by_curve, &by_edwards] {
        assert!(both.read(token, NOW * 1000).is_ok());
    }
    // A different key id.
    let renamed = tokens_of_set(&curve.replace("\"one\"", "\"two\""));
    assert!(renamed.read(&by_curve, NOW * 1000).is_err());
}

#[test]
fn checks_each_claim() {
    let tokens = &TokenVerifier::hs256(SECRET);
    check(tokens, r#"{"sub":"ann",IAT,"exp":EXP}"#, Ok(()));
    check(tokens, r#"{"sub":"ann",IAT,"exp":EXP.5}"#, Ok(()));
    check(tokens, r#"{"sub":"ann",IAT}"#, Err("it has no `exp`"));
    check(tokens, r#"{"sub":"ann","exp":"EXP"}"#, Err("its `exp` is no time"));
    check(tokens, r#"{"sub":"ann","exp":1e300}"#, Err("its `exp` is no time"));
    check(tokens, r#"{"sub":"ann","exp":-1}"#, Err("its `exp` is no time"));
    check(tokens, r#"{"sub":"ann","exp":1800000000}"#, Err("it has ended"));
    check(tokens, r#"{"sub":"ann",IAT,"exp":4000000000}"#, Err("it lasts longer than"));
    check(
        &tokens.clone().max_lifetime(Duration::MAX / 2000),
        r#"{"sub":"ann",IAT,"exp":4000000000}"#,
        Ok(()),
    );
    check(tokens, r#"{IAT,"exp":EXP}"#, Err("it has no `sub`"));
    check(tokens, r#"{"sub":"",IAT,"exp":EXP}"#, Err("it has no `sub`"));
    check(tokens, r#"{"sub":"ann",IAT,"exp":EXP,"nbf":1800000030}"#, Ok(()));
    check(tokens, r#"{"sub":"ann",IAT,"exp":EXP,"nbf":1800000090}"#, Err("it has not begun"));
    check(tokens, r#"{"sub":"ann","exp":EXP,"iat":1800000090}"#, Err("it was made in the future"));
    // Without a time of issue, a token would survive a revocation.
    check(tokens, r#"{"sub":"ann","exp":EXP}"#, Err("it has no `iat`"));
    check(tokens, r#"{"sub":"ann",IAT,"exp":EXP,"aud":"else"}"#, Err("TokenVerifier::audience"));
    check(tokens, "[]", Err("it has no `exp`"));
    let own = &tokens.clone().audience("us").issuer("them");
    check(own, r#"{"sub":"ann",IAT,"exp":EXP,"aud":"us","iss":"them"}"#, Ok(()));
    check(own, r#"{"sub":"ann",IAT,"exp":EXP,"aud":["x","us"],"iss":"them"}"#, Ok(()));
    check(own, r#"{"sub":"ann","exp":EXP,"aud":["x"],"iss":"them"}"#, Err("its `aud` is not us"));
    check(own, r#"{"sub":"ann","exp":EXP,"iss":"them"}"#, Err("its `aud` is not us"));
    check(own, r#"{"sub":"ann","exp":EXP,"aud":"us"}"#, Err("its `iss` is not them"));
    let shapes =
        [r#""all""#, "[]", r#"{"subscribe":["a"]}"#, r#"{"follow":"a"}"#, r#"{"follow":[1]}"#];
    for shape in shapes {
        let claims = format!(r#"{{"sub":"ann",IAT,"exp":EXP,"channels":{shape}}}"#);
        check(tokens, &claims, Err("its `channels` is no object of arrays of names"));
    }
    let claims = r#"{"sub":"ann",IAT,"exp":EXP,"channels":{"follow":["a*b"]}}"#;
    check(tokens, claims, Err("in its `channels`: `a*b` means no channels"));
    let critical = signed(r#"{"alg":"HS256","crit":["exp"]}"#, "{}");
    assert!(tokens.claims(&critical).unwrap_err().starts_with("it has `crit`"));
}

#[test]
fn a_token_grants_exactly_its_claims() {
    let claims = r#"{"sub":"ann","exp":1800000060,"iat":1799999940,
        "channels":{"follow":["news/*"],"publish":["chat/{room}"]}}"#;
    let taken = read(&TokenVerifier::hs256(SECRET), claims).unwrap();
    let permit = |action, name| taken.grant.rules.permit(action, name);
    assert!(permit(ChannelAction::Follow, "news/1") && permit(ChannelAction::Publish, "chat/1"));
    assert!(!permit(ChannelAction::Follow, "chat/1") && !permit(ChannelAction::Publish, "news/1"));
    assert!(!permit(ChannelAction::Manage, "news/1"));
    assert_eq!(taken.grant.subject.as_deref(), Some("ann"));
    assert_eq!((taken.grant.until, taken.issued), (Some(1_800_000_060_000), 1_799_999_940_000));
}

#[test]
fn checks_issuer_and_audience_of_each_key() {
    const OTHER: &[u8] = b"another secret of thirty-two bytes or more";
    let of_other = |claims: &str| {
        let text = format!("{}.{}", written(b"{\"alg\":\"HS256\"}"), written(claims.as_bytes()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, OTHER);
        format!("{text}.{}", written(hmac::sign(&key, text.as_bytes()).as_ref()))
    };
    let taken = |tokens: &TokenVerifier, parties: &str| {
        let claims = format!("{{\"sub\":\"ann\",\"iat\":{NOW},\"exp\":{}{parties}}}", NOW + 60);
        let own = tokens.read(&signed("{\"alg\":\"HS256\"}", &claims), NOW * 1000);
        (own.is_ok(), tokens.read(&of_other(&claims), NOW * 1000).is_ok())
    };
    let (a, b) = (r#","iss":"a","aud":"x""#, r#","iss":"b","aud":"y""#);
    let own = TokenVerifier::hs256(SECRET).issuer("a").audience("x");
    let other = TokenVerifier::hs256(OTHER);
    let both = own.clone().or(other.clone().issuer("b").audience("y"));
    assert_eq!((taken(&both, a), taken(&both, b)), ((true, false), (false, true)));
    assert_eq!(taken(&both, ""), (false, false));
    // Keys without an issuer and audience get those of the first set.
    let both = own.clone().or(other.clone());
    assert_eq!((taken(&both, a), taken(&both, b)), ((true, true), (false, false)));
    let both = other.or(own);
    assert_eq!((taken(&both, a), taken(&both, "")), ((true, false), (false, true)));
    let both = both.issuer("a").audience("x");
    assert_eq!((taken(&both, a), taken(&both, "")), ((true, true), (false, false)));
    // One key with two issuers.
    let own = TokenVerifier::hs256(SECRET);
    let two = own.clone().issuer("a").or(own.issuer("b"));
    for issuer in ["a", "b"] {
        assert!(taken(&two, &format!(",\"iss\":\"{issuer}\"")).0);
    }
}

#[test]
fn invalid_key_error_names_the_expected_form() {
    let check = |tokens: TokenVerifier, expected: &str| {
        let fault = tokens.fault().unwrap_or_default();
        assert!(fault.contains(expected), "{fault:?} says {expected:?}");
    };
    check(TokenVerifier::hs256("short"), "a secret of 5 bytes can be guessed");
    check(TokenVerifier::es256(RSA), "this public key is of another kind than ES256 wants");
    check(TokenVerifier::rs256(CURVE), "this public key is of another kind than RS256 wants");
    check(TokenVerifier::eddsa("x"), "there is no PEM where a PUBLIC KEY should be");
    let private = "-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n";
    check(TokenVerifier::eddsa(private), "there is BEGIN PRIVATE KEY where a PUBLIC KEY should be");
    check(TokenVerifier::eddsa(&EDWARDS.replace("MCow", "MC")), "cut or damaged");
    check(TokenVerifier::eddsa(&EDWARDS.replace('w', "!")), "cut or damaged");
    check(TokenVerifier::key_set("nowhere.json"), "nowhere.json: ");
    check(tokens_of_set(""), "it has no key for");
    check(tokens_of_set(r#"{"kty":"RSA","n":"AQAB"}"#), "a key has no `e`");
    let encrypting =
        format!("{{\"kty\":\"RSA\",\"use\":\"enc\",\"e\":\"AQAB\",\"n\":\"{MODULUS}\"}}");
    check(tokens_of_set(&encrypting), "it has no key for");
}

proptest! {
    #[test]
    fn rejects_arbitrary_text_with_a_reason(text: String, head: String, claims: String) {
        for (tokens, _) in slice::from_ref(&keys_of_the_rfcs()[0]) {
            prop_assert!(tokens.read(&text, NOW).is_err());
            prop_assert!(tokens.read(&signed(&head, &claims), NOW).is_err());
        }
        if let Err(fault) = TokenVerifier::hs256(SECRET).read(&signed("{\"alg\":\"HS256\"}", &claims), NOW) {
            prop_assert!(!fault.is_empty());
        }
    }

    #[test]
    fn rejects_a_token_with_one_changed_character(place in 0_usize..300, letter in "[A-Za-z0-9_.-]") {
        let tokens = TokenVerifier::hs256(SECRET);
        let claims = r#"{"sub":"ann","iat":1800000000,"exp":1800000060}"#;
        let mut token = signed("{\"alg\":\"HS256\"}", claims);
        let place = place % token.len();
        let is_same = token[place..].starts_with(&letter);
        token.replace_range(place..=place, &letter);
        prop_assert_eq!(tokens.read(&token, NOW * 1000).is_ok(), is_same);
    }
}
