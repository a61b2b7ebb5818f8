//! Waiting for a change of a job (UWS 1.1 2.2.1.2).

use std::time::Duration;

use trifid_archive_engine::jobs::Phase;

use super::{list, wrong};
use crate::fault::Fault;
use crate::form::Form;

/// What a client that waits asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// The longest that it waits.
    pub(super) time: Duration,
    /// The phase that it knows of.
    pub(super) reference: Option<Phase>,
}

/// What the query of a request asks for; nothing, if it does not wait. `most` is the longest that anybody waits here.
pub(super) fn asked(query: &str, most: Duration) -> Result<Option<Wait>, Fault> {
    let mut form = Form::default();
    form.add(query)?;
    let named = |wanted: &str| {
        let pairs = form.pairs.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        pairs.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    };
    let Some(time) = named("WAIT") else { return Ok(None) };
    let time = time_of(time)?.unwrap_or(most).min(most);
    Ok(Some(Wait { time, reference: named("PHASE").map(list::phase).transpose()? }))
}

/// A number of seconds; a negative one is as long as allowed.
fn time_of(value: &str) -> Result<Option<Duration>, Fault> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong("WAIT", value, "a whole number of seconds, or -1 for as long as possible"));
    }
    let is_bounded = digits.len() == value.len();
    Ok(is_bounded.then(|| Duration::from_secs(digits.parse().unwrap_or(u64::MAX))))
}
