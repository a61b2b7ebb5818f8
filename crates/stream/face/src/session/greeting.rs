//! Preface and Hello: who the client is, for whom it speaks, what both sides can do.

use trifid_base_web::{Principal, TenantScope};
use trifid_stream_model::frame::{Capabilities, Code, Frame, Preface, Request, reply, request};
use trifid_stream_model::names::Tenant;

use super::serving::{Serving, Standing};
use super::{Phase, Session};
use crate::limits::FRAME_BYTES_LEAST;

/// What this broker can do.
const CAPABILITIES: Capabilities = Capabilities::ALL;

impl Session {
    /// Answers the client's preface with our own.
    pub(super) fn meet(&mut self, preface: Preface) {
        self.out.frame(&Preface::new(CAPABILITIES).encode());
        self.phase = Phase::Hello { capabilities: CAPABILITIES.and(preface.capabilities) };
    }

    /// Takes the client in, or ends with the reason.
    pub(super) fn greet(&mut self, capabilities: Capabilities, frame: &Frame) {
        let hello = match Request::decode(frame) {
            Ok(Request::Hello(hello)) => hello,
            Ok(_) => return self.end_with(frame.id, Code::InvalidRequest, "the first frame has to be Hello"),
            Err(error) => return self.break_off(&error),
        };
        if !capabilities.has(hello.required) {
            let message = "a capability that the client cannot do without is not there";
            return self.end_with(frame.id, Code::Unsupported, message);
        }
        if hello.max_frame_bytes < FRAME_BYTES_LEAST {
            return self.end_with(frame.id, Code::InvalidRequest, "the client takes too small frames");
        }
        let standing = match self.stand(&hello) {
            Ok(standing) => standing,
            Err((code, message)) => {
                if code == Code::Unauthorized {
                    self.core.stats.refused_tokens.add(self.worker, 1);
                }
                return self.end_with(frame.id, code, message);
            }
        };
        self.welcome(frame.id, capabilities, &hello, standing);
    }

    fn welcome(&mut self, id: u32, capabilities: Capabilities, hello: &request::Hello, standing: Standing) {
        let limits = &self.core.limits;
        let budget = || self.core.broker.connection(&standing.tenant, limits.inflight_bytes);
        let Some(tenancy) = self.account.tenancy(&standing.tenant, budget) else {
            let message = "another greeting of this connection named another tenant";
            return self.end_with(id, Code::InvalidRequest, message);
        };
        let frame_bytes = u32::try_from(limits.frame_bytes).unwrap_or(u32::MAX).min(hello.max_frame_bytes);
        self.decoder.set_max(limits.frame_bytes);
        self.out.frame_bytes = frame_bytes as usize;
        self.out.reply(
            id,
            reply::Welcome {
                tenant: standing.tenant.clone(),
                broker: concat!("trifid/", env!("CARGO_PKG_VERSION")).to_owned(),
                capabilities,
                max_frame_bytes: frame_bytes,
                max_inflight_bytes: limits.inflight_bytes as u64,
                max_subscriptions: u32::try_from(limits.subscriptions).unwrap_or(u32::MAX),
                idle_timeout_ms: u32::try_from(limits.idle_timeout.as_millis()).unwrap_or(u32::MAX),
            },
        );
        let serving = Serving::new(&self.core, self.worker, &self.account, tenancy, standing, frame_bytes);
        self.phase = Phase::Serving(Box::new(serving));
    }

    /// Who calls, and for which tenant.
    fn stand(&self, hello: &request::Hello) -> Result<Standing, (Code, &'static str)> {
        let token = hello.token.as_ref().map(|token| token.0.clone());
        let (principal, generation) = match &self.core.tokens {
            None => (Principal::local(), 0),
            Some(tokens) => {
                let generation = tokens.generation();
                let token = token.as_ref().ok_or((Code::Unauthorized, "a token is needed"))?;
                let principal = tokens.verify(token.as_bytes());
                (principal.ok_or((Code::Unauthorized, "the token is not known"))?, generation)
            }
        };
        let tenant = tenant_of(&principal.tenant, hello.tenant.as_ref())?;
        Ok(Standing { tenant, principal, token, generation })
    }
}

/// The tenant that a caller speaks for. On HTTP the default tenant is the empty name.
fn tenant_of(scope: &TenantScope, wanted: Option<&Tenant>) -> Result<Tenant, (Code, &'static str)> {
    let named =
        match scope {
            TenantScope::Any => None,
            TenantScope::One(name) if name.is_empty() => Some(Tenant::default()),
            TenantScope::One(name) => {
                let named = Tenant::new(name);
                Some(named.map_err(|_| {
                    (Code::Forbidden, "the token's tenant has a name that streams cannot have")
                })?)
            }
        };
    let tenant = match (named, wanted) {
        (Some(named), Some(wanted)) if named != *wanted => {
            return Err((Code::Forbidden, "the token belongs to another tenant"));
        }
        (Some(named), _) => named,
        (None, wanted) => wanted.cloned().unwrap_or_default(),
    };
    // The broker's own streams are nobody's business.
    if tenant.as_str().starts_with('_') {
        return Err((Code::Forbidden, "tenants that begin with an underscore are the broker's own"));
    }
    Ok(tenant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_speaks_for_its_tenant() {
        let check = |scope: &TenantScope, wanted: Option<&str>, expected: Result<&str, Code>| {
            let wanted = wanted.map(|name| Tenant::new(name).unwrap());
            let found = tenant_of(scope, wanted.as_ref());
            let found = found.as_ref().map(Tenant::as_str).map_err(|(code, _)| *code);
            assert_eq!(found, expected, "{scope:?} {wanted:?}");
        };
        let one = |name: &str| TenantScope::One(name.into());
        check(&TenantScope::Any, None, Ok("default"));
        check(&TenantScope::Any, Some("city"), Ok("city"));
        check(&TenantScope::Any, Some("_system"), Err(Code::Forbidden));
        check(&one(""), None, Ok("default"));
        check(&one(""), Some("default"), Ok("default"));
        check(&one("city"), None, Ok("city"));
        check(&one("city"), Some("town"), Err(Code::Forbidden));
        check(&one("a city"), None, Err(Code::Forbidden));
        check(&one("_system"), None, Err(Code::Forbidden));
    }
}
