//! SASL PLAIN (RFC 4616) over SaslHandshake and SaslAuthenticate (KIP-43, KIP-152).
//!
//! The password is a token of the token file that HTTP uses; the user is the tenant that the client works in, which
//! the token must cover. The token is compared in constant time and never logged.
//!
//! A listener without tokens takes any password, so that a client can name its tenant there too.

use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse};
use kafka_protocol::protocol::StrBytes;
use trifid_base_web::{Principal, Role, Tokens};
use trifid_stream_engine::SYSTEM_TENANT;
use trifid_stream_model::names::{DEFAULT, Tenant};

use super::{Answer, encode};
use crate::limits::SASL_BYTES_MAX;
use crate::wire::head::Head;

/// The one mechanism.
const PLAIN: &str = "PLAIN";

/// How far a stranger has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// No mechanism is agreed on.
    Nothing,
    /// PLAIN; the token comes in SaslAuthenticate.
    Agreed,
    /// PLAIN by version 0 of the handshake; the token comes without a head (KIP-43).
    AgreedBare,
}

impl Handshake {
    pub(crate) fn awaits_token(self) -> bool {
        self == Self::Agreed
    }

    pub(crate) fn awaits_bare_token(self) -> bool {
        self == Self::AgreedBare
    }
}

/// What a token is worth.
pub(crate) enum Verdict {
    /// It lets its bearer into this tenant.
    Known(Tenant),
    /// Nothing.
    Denied,
}

/// Answers the handshake.
pub(crate) fn handshake(head: &Head, request: &SaslHandshakeRequest) -> (Answer, Handshake) {
    let agreed = &*request.mechanism == PLAIN;
    let response = SaslHandshakeResponse::default()
        .with_error_code(if agreed { 0 } else { ResponseError::UnsupportedSaslMechanism.code() })
        .with_mechanisms(vec![StrBytes::from_static_str(PLAIN)]);
    let state = match (agreed, head.version) {
        (false, _) => Handshake::Nothing,
        (true, 0) => Handshake::AgreedBare,
        (true, _) => Handshake::Agreed,
    };
    (encode(head, &response), state)
}

/// Tells a client that it is let in. Its session lasts as long as its connection (KIP-368: a lifetime of nought).
pub(crate) fn welcome(head: &Head, tenant: &Tenant) -> Answer {
    tracing::debug!(%tenant, "a client of Kafka said who it is");
    encode(head, &SaslAuthenticateResponse::default())
}

/// Tells a client that it is not.
pub(crate) fn denial(head: &Head) -> Answer {
    refuse(
        head,
        ResponseError::SaslAuthenticationFailed,
        "the user is no tenant that the token covers, or no token",
    )
}

/// Tells a client that there was no handshake, or that it is known already.
pub(crate) fn out_of_order(head: &Head) -> Answer {
    refuse(head, ResponseError::IllegalSaslState, "SaslAuthenticate follows one SaslHandshake")
}

fn refuse(head: &Head, error: ResponseError, message: &'static str) -> Answer {
    let response = SaslAuthenticateResponse::default()
        .with_error_code(error.code())
        .with_error_message(Some(StrBytes::from_static_str(message)))
        .with_auth_bytes(Bytes::new());
    encode(head, &response)
}

/// The tenant and the role that a message of PLAIN stands for. Without tokens there is nobody to tell apart: the client
/// is whom it says, as over HTTP ([`Principal::local`]).
pub(crate) fn verify(tokens: Option<&Tokens>, message: &[u8]) -> Option<(Tenant, Role)> {
    let (user, password) = parse(message)?;
    let principal = match tokens {
        Some(tokens) => tokens.verify(password)?,
        None => Principal::local(),
    };
    let tenant = if user.is_empty() || user == "-" { DEFAULT } else { user };
    // The token file writes the default tenant `-`, which it keeps as the empty name.
    let covered = principal.tenant.covers(tenant) || tenant == DEFAULT && principal.tenant.covers("");
    // The broker's own tenant is nobody's.
    let allowed = covered && tenant != SYSTEM_TENANT;
    allowed.then_some(())?;
    Some((Tenant::new(tenant).ok()?, principal.role))
}

/// `[authzid] NUL authcid NUL passwd`. Who wants to act for somebody else is refused.
fn parse(message: &[u8]) -> Option<(&str, &[u8])> {
    if message.len() > SASL_BYTES_MAX {
        return None;
    }
    let mut parts = message.split(|byte| *byte == 0);
    let (authzid, authcid, password) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(authzid.is_empty() || authzid == authcid) {
        return None;
    }
    Some((std::str::from_utf8(authcid).ok()?, password))
}

#[cfg(test)]
mod tests {
    use trifid_base_web::auth::hash_token;

    use super::*;

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let lines =
            [("one", "city write"), ("two", "* admin"), ("three", "- read"), ("four", "default read")];
        let text: String =
            lines.iter().map(|(token, rest)| format!("{} {rest}\n", hash_token(token))).collect();
        std::fs::write(&path, text).unwrap();
        let tokens = Tokens::open(&path).unwrap();
        (folder, tokens)
    }

    #[test]
    fn the_user_is_a_tenant_that_the_token_covers() {
        let (_folder, tokens) = tokens();
        let check = |message: &str, expected: Option<(&str, Role)>| {
            let found = verify(Some(&tokens), message.as_bytes());
            let found = found.as_ref().map(|(tenant, role)| (tenant.as_str(), *role));
            assert_eq!(found, expected, "{message:?}");
        };
        check("\0city\0one", Some(("city", Role::Write)));
        check("city\0city\0one", Some(("city", Role::Write)));
        check("\0town\0one", None);
        check("\0town\0two", Some(("town", Role::Admin)));
        check("\0default\0three", Some(("default", Role::Read)));
        check("\0-\0three", Some(("default", Role::Read)));
        check("\0\0three", Some(("default", Role::Read)));
        check("\0default\0four", Some(("default", Role::Read)));
        check("\0city\0three", None);
        check("\0city\0five", None);
        check("\0no tenant\0two", None);
        check("other\0city\0one", None);
        check("city\0one", None);
        check("\0city\0one\0", None);
        check("", None);
        check("\0_system\0two", None);
        let local = verify(None, b"\0town\0whatever");
        assert_eq!(
            local.map(|(tenant, role)| (tenant.to_string(), role)),
            Some(("town".to_owned(), Role::Admin))
        );
        assert!(verify(None, b"\0_system\0whatever").is_none() && verify(None, b"town").is_none());
    }
}
