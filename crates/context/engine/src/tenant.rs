//! Tenant names (4.14, 6.3.14).

use crate::limits::MAX_TENANT_NAME;

/// The name of a tenant; the default tenant has the empty name and no header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TenantName(Box<str>);

/// Why a text cannot name a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a tenant name is 1 to {MAX_TENANT_NAME} letters, digits, '-', '_' or '.', and begins with a letter or digit"
)]
pub struct InvalidTenant;

impl TenantName {
    /// The name in a `NGSILD-Tenant` header. Names of other form cannot be addressed by clients; the broker
    /// keeps them for itself.
    pub fn parse(text: &str) -> Result<Self, InvalidTenant> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let starts = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if starts && text.len() <= MAX_TENANT_NAME && text.bytes().all(allowed) {
            return Ok(TenantName(text.into()));
        }
        Err(InvalidTenant)
    }

    /// The default tenant.
    pub fn default_tenant() -> Self {
        TenantName::default()
    }

    /// True for the default tenant.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// The name; empty for the default tenant.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "city-1", "openiot", "A.b_c"] {
            assert_eq!(TenantName::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "a b", "a/b", "é", &"a".repeat(129)] {
            assert_eq!(TenantName::parse(bad), Err(InvalidTenant), "{bad}");
        }
        assert!(TenantName::default_tenant().is_default());
    }
}
