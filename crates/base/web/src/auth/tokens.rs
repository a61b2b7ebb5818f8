//! The token file, and the comparison against it.
//!
//! One token a line: the SHA-256 of the token in hexadecimal, the tenant (`*` for all, `-` for the default
//! one), the role (`read`, `write`, `admin`) and, if wanted, a name for the logs. `#` begins a comment.
//!
//! ```text
//! # sha-256 of the token                                          tenant  role   name
//! 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 city    write  feeder
//! ```
//!
//! The file holds digests of secrets with at least 128 bits of their own ([`generate_token`] makes one of 256),
//! so a fast hash is enough: nobody can search that space. A presented token is hashed and compared with every
//! entry in constant time, without an early exit.
//!
//! Each core works on a copy of its own, down to the reference counts, and looks at one generation number
//! to learn that the file was read again; so a request with a token touches no cache line that another core
//! writes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use http::header::AUTHORIZATION;
use parking_lot::Mutex;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};

use super::{Principal, Role, TenantScope};
use crate::limits::{TENANT_BYTES_MAX, TOKEN_BYTES_MAX, TOKEN_FILE_BYTES_MAX, TOKENS_MAX};

/// Why a line of a token file was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The line lacks a field.
    #[error("expected a digest, a tenant and a role")]
    Fields,
    /// The line has more than four fields.
    #[error("more than the four fields digest, tenant, role and name")]
    Surplus,
    /// The digest is not one.
    #[error("the digest is not 64 hexadecimal digits")]
    Digest,
    /// The tenant's name is too long.
    #[error("the tenant is longer than {TENANT_BYTES_MAX} bytes")]
    Tenant,
    /// No such role.
    #[error("the role is none of read, write, admin")]
    Role,
    /// The same token twice.
    #[error("the same digest stands on an earlier line")]
    Twice,
    /// Too many tokens.
    #[error("more than {TOKENS_MAX} tokens")]
    TooMany,
}

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("token file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is larger than a token file can be.
    #[error("token file {} is larger than {TOKEN_FILE_BYTES_MAX} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is wrong.
    #[error("token file {}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from one.
        line: usize,
        /// What is wrong with it.
        problem: TokenError,
    },
    /// It holds no token, so that nobody could call.
    #[error("token file {} holds no token", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The tokens of a file, read again on demand.
pub struct Tokens {
    path: PathBuf,
    table: Mutex<Arc<Table>>,
    generation: AtomicU64,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("path", &self.path).field("count", &self.len()).finish()
    }
}

impl Tokens {
    /// Reads the file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let path = path.into();
        let table = read(&path)?;
        Ok(Self { path, table: Mutex::new(Arc::new(table)), generation: AtomicU64::new(1) })
    }

    /// Reads the file again; if that fails, the tokens stay as they were. Answers how many there are now.
    pub fn reload(&self) -> Result<usize, TokenFileError> {
        let table = read(&self.path)?;
        let count = table.entries.len();
        *self.table.lock() = Arc::new(table);
        self.generation.fetch_add(1, Ordering::Release);
        Ok(count)
    }

    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.table.lock().entries.len()
    }

    /// Whether there are none, which [`open`](Self::open) and [`reload`](Self::reload) prevent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The caller whose token this is, for protocols that ask once a connection. Takes the same time whether and
    /// wherever it is found.
    pub fn verify(&self, token: &[u8]) -> Option<Principal> {
        let table = Arc::clone(&self.table.lock());
        (token.len() <= TOKEN_BYTES_MAX).then(|| table.verify(token).cloned()).flatten()
    }

    /// Changes whenever the file was read again: whoever was let in before has to be asked anew.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A copy that shares nothing with any other.
    pub(crate) fn copy(&self) -> Table {
        let shared = Arc::clone(&self.table.lock());
        Table { entries: shared.entries.iter().map(Entry::copy).collect() }
    }
}

/// The digests and whom they stand for.
#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
}

struct Entry {
    digest: [u8; SHA256_OUTPUT_LEN],
    principal: Principal,
}

impl Entry {
    /// A copy with reference counts of its own.
    fn copy(&self) -> Self {
        let Principal { tenant, role, name } = &self.principal;
        let tenant = match tenant {
            TenantScope::Any => TenantScope::Any,
            TenantScope::One(name) => TenantScope::One(Arc::from(&**name)),
        };
        let name = name.as_ref().map(|name| Arc::from(&**name));
        Self { digest: self.digest, principal: Principal { tenant, role: *role, name } }
    }
}

impl Table {
    /// The caller whose token this is. Takes the same time whether and wherever it is found.
    pub(crate) fn verify(&self, token: &[u8]) -> Option<&Principal> {
        let presented = digest(&SHA256, token);
        let mut found = u32::MAX;
        for (at, entry) in (0u32..).zip(&self.entries) {
            found.conditional_assign(&at, entry.digest[..].ct_eq(presented.as_ref()));
        }
        self.entries.get(found as usize).map(|entry| &entry.principal)
    }
}

/// The token of `Authorization: Bearer ...` (RFC 6750 2.1; the scheme's case does not matter, RFC 9110 11.1).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    let token = token.trim_ascii();
    let fits = scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty() && token.len() <= TOKEN_BYTES_MAX;
    fits.then_some(token)
}

fn read(path: &Path) -> Result<Table, TokenFileError> {
    let text = read_bounded(path)?;
    let entries = parse(&text).map_err(|(line, problem)| TokenFileError::Line {
        path: path.to_owned(),
        line,
        problem,
    })?;
    if entries.is_empty() {
        return Err(TokenFileError::Empty { path: path.to_owned() });
    }
    Ok(Table { entries })
}

fn read_bounded(path: &Path) -> Result<String, TokenFileError> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(TOKEN_FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|source| TokenFileError::Read { path: path.to_owned(), source })?;
    if text.len() as u64 > TOKEN_FILE_BYTES_MAX {
        return Err(TokenFileError::TooLarge { path: path.to_owned() });
    }
    Ok(text)
}

/// The entries of a file, or the first bad line, counted from one.
fn parse(text: &str) -> Result<Vec<Entry>, (usize, TokenError)> {
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let entry = parse_line(line).map_err(|problem| (number, problem))?;
        if entries.iter().any(|known| known.digest == entry.digest) {
            return Err((number, TokenError::Twice));
        }
        if entries.len() == TOKENS_MAX {
            return Err((number, TokenError::TooMany));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn parse_line(line: &str) -> Result<Entry, TokenError> {
    let mut fields = line.split_whitespace();
    let mut field = || fields.next().ok_or(TokenError::Fields);
    let (digest, tenant, role) = (field()?, field()?, field()?);
    let name = fields.next().map(Arc::from);
    if fields.next().is_some() {
        return Err(TokenError::Surplus);
    }
    let digest = parse_digest(digest).ok_or(TokenError::Digest)?;
    let role: Role = role.parse().map_err(|()| TokenError::Role)?;
    Ok(Entry { digest, principal: Principal { tenant: parse_tenant(tenant)?, role, name } })
}

fn parse_tenant(text: &str) -> Result<TenantScope, TokenError> {
    match text {
        "*" => Ok(TenantScope::Any),
        "-" => Ok(TenantScope::One(Arc::from(""))),
        name if name.len() > TENANT_BYTES_MAX => Err(TokenError::Tenant),
        name => Ok(TenantScope::One(Arc::from(name))),
    }
}

fn parse_digest(text: &str) -> Option<[u8; SHA256_OUTPUT_LEN]> {
    let text = text.as_bytes();
    let mut out = [0; SHA256_OUTPUT_LEN];
    if text.len() != 2 * out.len() {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        *byte = (hex_value(pair[0])? << 4) | hex_value(pair[1])?;
    }
    Some(out)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn hex(bytes: &[u8]) -> String {
    let digit =
        |nibble: u8| char::from_digit(u32::from(nibble), 16).expect("four bits are one hexadecimal digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The digest of a token, as a token file spells it.
pub fn hash_token(token: &str) -> String {
    hex(digest(&SHA256, token.trim().as_bytes()).as_ref())
}

/// A fresh token of 256 random bits; `None` if the system has no randomness to give.
pub fn generate_token() -> Option<String> {
    let mut bytes = [0u8; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn table(text: &str) -> Table {
        Table { entries: parse(text).unwrap_or_else(|problem| panic!("{problem:?}")) }
    }

    #[test]
    fn a_token_finds_its_principal() {
        let text = format!(
            "# two tokens\n\n{}  city write feeder # a comment\n{} * admin\n{} - read",
            hash_token("one"),
            hash_token("two"),
            hash_token("three").to_uppercase(),
        );
        let table = table(&text);
        let one = table.verify(b"one").unwrap();
        assert_eq!((one.role, one.name.as_deref()), (Role::Write, Some("feeder")));
        assert!(one.tenant.covers("city") && !one.tenant.covers("") && !one.tenant.covers("town"));
        assert_eq!(table.verify(b"two").unwrap().tenant, TenantScope::Any);
        assert!(table.verify(b"three").unwrap().tenant.covers(""));
        assert_eq!(table.verify(b"four"), None);
        assert_eq!(table.verify(b""), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        let digest = hash_token("x");
        let check = |text: String, line: usize, problem: TokenError| {
            assert_eq!(parse(&text).map(|_| ()), Err((line, problem)), "{text}");
        };
        check(format!("\n{digest} a"), 2, TokenError::Fields);
        check(format!("{digest} a read n more"), 1, TokenError::Surplus);
        check(format!("{} a read", &digest[1..]), 1, TokenError::Digest);
        check(format!("{}g a read", &digest[1..]), 1, TokenError::Digest);
        check(format!("{digest} a owner"), 1, TokenError::Role);
        check(format!("{digest} a read\n{digest} b read"), 2, TokenError::Twice);
        check(format!("{digest} {} read", "a".repeat(TENANT_BYTES_MAX + 1)), 1, TokenError::Tenant);
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let text: String =
            (0..=TOKENS_MAX).map(|n| format!("{} * read\n", hash_token(&n.to_string()))).collect();
        assert_eq!(parse(&text).map(|_| ()), Err((TOKENS_MAX + 1, TokenError::TooMany)));
    }

    #[test]
    fn a_reload_that_fails_keeps_the_old_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        assert!(matches!(Tokens::open(&path), Err(TokenFileError::Read { .. })));
        std::fs::write(&path, "# none\n").unwrap();
        assert!(matches!(Tokens::open(&path), Err(TokenFileError::Empty { .. })));
        std::fs::write(&path, format!("{} * read", hash_token("old"))).unwrap();
        let tokens = Tokens::open(&path).unwrap();
        let generation = tokens.generation();
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(tokens.reload(), Err(TokenFileError::Line { line: 1, .. })));
        assert_eq!(tokens.generation(), generation);
        assert!(tokens.copy().verify(b"old").is_some());
        std::fs::write(&path, format!("{} * read", hash_token("new"))).unwrap();
        assert_eq!(tokens.reload().unwrap(), 1);
        assert_ne!(tokens.generation(), generation);
        assert!(tokens.verify(b"old").is_none() && tokens.verify(b"new").is_some());
        assert!(tokens.verify(&[b'x'; TOKEN_BYTES_MAX + 1]).is_none());
        assert!(tokens.copy().verify(b"old").is_none() && tokens.copy().verify(b"new").is_some());
    }

    #[test]
    fn the_bearer_scheme_is_read_in_any_case() {
        let check = |value: &'static str, token: Option<&[u8]>| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(bearer(&headers), token, "{value}");
        };
        check("Bearer abc", Some(b"abc"));
        check("bEARER  abc ", Some(b"abc"));
        check("Basic abc", None);
        check("Bearer ", None);
        check("Bearer", None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_generated_token_is_long_and_its_own() {
        let (one, two) = (generate_token().unwrap(), generate_token().unwrap());
        assert_eq!(one.len(), 64);
        assert_ne!(one, two);
    }

    #[test]
    fn debug_output_shows_no_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, format!("{} * read", hash_token("secret"))).unwrap();
        let shown = format!("{:?}", Tokens::open(&path).unwrap());
        assert!(!shown.contains(&hash_token("secret")[..8]), "{shown}");
    }

    proptest! {
        #[test]
        fn any_file_is_read_or_refused(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn what_is_written_is_found(
            tokens in proptest::collection::btree_set("[a-zA-Z0-9._~+/-]{1,40}", 1..8),
            tenant in "[a-z]{1,8}",
        ) {
            let text: String =
                tokens.iter().map(|token| format!("{} {tenant} write\n", hash_token(token))).collect();
            let table = table(&text);
            for token in &tokens {
                prop_assert!(table.verify(token.as_bytes()).is_some_and(|found| found.tenant.covers(&tenant)));
                let longer = format!("{token} ");
                prop_assert!(table.verify(longer.as_bytes()).is_none());
            }
        }
    }
}
