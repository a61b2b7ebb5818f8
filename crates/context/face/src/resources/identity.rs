//! `info/sourceIdentity` (6.33): who this context source is (5.15.1, 5.2.40).

use crate::exchange::Exchange;
use crate::media::{Media, PLAIN_MEDIA};
use crate::params::Set;
use crate::problem::Refusal;
use crate::reply::Reply;
use crate::write;

/// 6.33.3.1. Tells nothing of the tenant but its alias, so the tenant need not exist.
pub(crate) async fn retrieve(exchange: &Exchange<'_>) -> Result<Reply, Refusal> {
    exchange.params(Set::NONE)?;
    let media = exchange.media(PLAIN_MEDIA)?;
    let asked = exchange.header_context().await?;
    let alias = alias(&exchange.settings.alias, exchange.tenant.as_str());
    let uptime = exchange.now.0.saturating_sub(exchange.started.0).max(0) / 1_000_000;
    let members = [
        ("id", ["urn:ngsi-ld:ContextSourceIdentity:", &alias].concat()),
        ("type", "ContextSourceIdentity".to_owned()),
        ("contextSourceAlias", alias),
        ("contextSourceUptime", duration(uptime.unsigned_abs())),
        ("contextSourceTimeAt", exchange.now.to_string()),
    ];
    let mut out = Vec::with_capacity(512);
    for (at, (name, value)) in members.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        write::string(&mut out, name);
        out.push(b':');
        write::string(&mut out, value);
    }
    if media == Media::LdJson {
        out.extend_from_slice(b",\"@context\":");
        out.extend_from_slice(asked.context.json().as_bytes());
    }
    out.push(b'}');
    let link = if media == Media::LdJson { None } else { asked.link() };
    Ok(Reply { body: out, media: Some(media), link, ..Reply::default() })
}

/// Identifies one tenant of this source (Table 5.2.40-1). Tenant names have no `~`, so no two tenants share an alias.
fn alias(broker: &str, tenant: &str) -> String {
    if tenant.is_empty() { broker.to_owned() } else { [broker, "~", tenant].concat() }
}

/// Seconds as an ISO 8601 duration.
fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let days = if days == 0 { String::new() } else { format!("{days}D") };
    format!("P{days}T{hours}H{minutes}M{seconds}S")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_are_durations() {
        assert_eq!(duration(0), "PT0H0M0S");
        assert_eq!(duration(93_784), "P1DT2H3M4S");
    }

    #[test]
    fn tenants_have_aliases_of_their_own() {
        assert_eq!([alias("a", ""), alias("a", "b")], ["a", "a~b"]);
    }
}
