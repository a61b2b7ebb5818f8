//! Which addresses belong to the public Internet.
//!
//! The classes are those of the IANA special-purpose registries (RFC 6890 and its successors). Where an IPv6
//! address carries an IPv4 address that a host or a translator will use in its place (RFC 4291 2.5.5.2, RFC 6052),
//! the class is that of the address inside. Of IPv6, only 2000::/3 is handed out as global unicast: what lies
//! elsewhere and has no name here is reserved.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Why an address is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// This host on this network: 0.0.0.0/8, `::`.
    Unspecified,
    /// This host: 127.0.0.0/8, `::1`.
    Loopback,
    /// A private network: RFC 1918, unique local (fc00::/7) and the old site local (fec0::/10).
    Private,
    /// This link, cloud metadata services included: 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// Behind a carrier's address translation: 100.64.0.0/10, local NAT64 prefixes (64:ff9b:1::/48).
    CarrierGrade,
    /// Groups of hosts: 224.0.0.0/4, ff00::/8.
    Multicast,
    /// All hosts: 255.255.255.255.
    Broadcast,
    /// Examples in documents.
    Documentation,
    /// Measurements between devices: 198.18.0.0/15.
    Benchmarking,
    /// Tunnels that can lead anywhere: 6to4 (2002::/16), Teredo and other protocol assignments (2001::/23).
    Tunnel,
    /// Everything that is reserved otherwise.
    Reserved,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspecified",
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::CarrierGrade => "carrier-grade",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Documentation => "documentation",
            Self::Benchmarking => "benchmarking",
            Self::Tunnel => "tunnel",
            Self::Reserved => "reserved",
        })
    }
}

/// The class of an address, or nothing if it is public.
pub fn classify(address: IpAddr) -> Option<AddressClass> {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<AddressClass> {
    use AddressClass as Class;
    Some(match address.octets() {
        [0, ..] => Class::Unspecified,
        [127, ..] => Class::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        [169, 254, ..] => Class::LinkLocal,
        [100, 64..=127, ..] => Class::CarrierGrade,
        [224..=239, ..] => Class::Multicast,
        [255, 255, 255, 255] => Class::Broadcast,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Documentation,
        [198, 18..=19, ..] => Class::Benchmarking,
        [192, 88, 99, _] => Class::Tunnel,
        [192, 0, 0, _] | [240..=255, ..] => Class::Reserved,
        _ => return None,
    })
}

fn classify_v6(address: Ipv6Addr) -> Option<AddressClass> {
    use AddressClass as Class;
    if let Some(inside) = address.to_ipv4_mapped().or_else(|| translated(address)) {
        return classify_v4(inside);
    }
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => Class::Private,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0x64, 0xff9b, 1, ..] => Class::CarrierGrade,
        [0xff00..=0xffff, ..] => Class::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Documentation,
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] => Class::Tunnel,
        [0x2000..=0x3fff, ..] => return None,
        _ => Class::Reserved,
    })
}

/// The address that the well-known NAT64 prefix leads to (RFC 6052 2.1).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            Some(Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    }
}

/// A network: an address and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: u128,
    bits: u32,
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a network such as 10.1.0.0/16 or fd00:1::/32")]
pub struct NetworkError(pub(crate) String);

impl Network {
    /// Whether an address lies in the network. IPv4 addresses and their IPv6-mapped forms are the same.
    pub fn contains(&self, address: IpAddr) -> bool {
        let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
        bits(address) & mask == self.base & mask
    }
}

/// One number line for both families: IPv4 lies in its mapped range.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let error = || NetworkError(text.to_owned());
        let address: IpAddr = address.trim().parse().map_err(|_| error())?;
        let (width, offset) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
        let length = length.map_or(Ok(width), |bits| bits.trim().parse().map_err(|_| error()))?;
        if length > width {
            return Err(error());
        }
        Ok(Self { base: bits(address), bits: offset + length })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_have_their_class() {
        use AddressClass as Class;
        for (text, class) in [
            ("8.8.8.8", None),
            ("1.1.1.1", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("100.63.255.255", None),
            ("100.128.0.0", None),
            ("223.255.255.255", None),
            ("0.0.0.0", Some(Class::Unspecified)),
            ("0.1.2.3", Some(Class::Unspecified)),
            ("127.0.0.1", Some(Class::Loopback)),
            ("127.255.255.254", Some(Class::Loopback)),
            ("10.0.0.1", Some(Class::Private)),
            ("172.16.0.1", Some(Class::Private)),
            ("172.31.255.255", Some(Class::Private)),
            ("192.168.1.1", Some(Class::Private)),
            ("169.254.169.254", Some(Class::LinkLocal)),
            ("100.64.0.1", Some(Class::CarrierGrade)),
            ("224.0.0.1", Some(Class::Multicast)),
            ("239.255.255.255", Some(Class::Multicast)),
            ("255.255.255.255", Some(Class::Broadcast)),
            ("240.0.0.1", Some(Class::Reserved)),
            ("192.0.0.8", Some(Class::Reserved)),
            ("192.0.2.1", Some(Class::Documentation)),
            ("198.51.100.1", Some(Class::Documentation)),
            ("203.0.113.1", Some(Class::Documentation)),
            ("198.19.255.255", Some(Class::Benchmarking)),
            ("192.88.99.1", Some(Class::Tunnel)),
            ("2606:4700::1111", None),
            ("2001:4860:4860::8888", None),
            ("::", Some(Class::Unspecified)),
            ("::1", Some(Class::Loopback)),
            ("::127.0.0.1", Some(Class::Reserved)),
            ("::ffff:0:127.0.0.1", Some(Class::Reserved)),
            ("::ffff:127.0.0.1", Some(Class::Loopback)),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::10.0.0.1", Some(Class::Private)),
            ("64:ff9b::a9fe:a9fe", Some(Class::LinkLocal)),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b:1::8.8.8.8", Some(Class::CarrierGrade)),
            ("fd00::1", Some(Class::Private)),
            ("fc00::1", Some(Class::Private)),
            ("fec0::1", Some(Class::Private)),
            ("fe80::1", Some(Class::LinkLocal)),
            ("febf::1", Some(Class::LinkLocal)),
            ("ff02::1", Some(Class::Multicast)),
            ("2001:db8::1", Some(Class::Documentation)),
            ("3fff:fff::1", Some(Class::Documentation)),
            ("3fff:1000::1", None),
            ("2001::1", Some(Class::Tunnel)),
            ("2002:7f00:1::", Some(Class::Tunnel)),
            ("100::1", Some(Class::Reserved)),
            ("5f00::1", Some(Class::Reserved)),
            ("4000::1", Some(Class::Reserved)),
        ] {
            assert_eq!(classify(text.parse().unwrap()), class, "{text}");
        }
    }

    #[test]
    fn networks_contain_what_they_say() {
        let check = |network: &str, address: &str, inside: bool| {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), inside, "{address}");
        };
        check("10.1.0.0/16", "10.1.255.255", true);
        check("10.1.0.0/16", "10.2.0.0", false);
        check("10.1.0.0/16", "::ffff:10.1.2.3", true);
        check("127.0.0.1", "127.0.0.1", true);
        check("127.0.0.1", "127.0.0.2", false);
        check("fd00:1::/32", "fd00:1:ffff::", true);
        check("fd00:1::/32", "fd00:2::", false);
        check("::/0", "10.0.0.1", true);
        check("0.0.0.0/0", "::1", false);
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host/8", "10.0.0.0/x", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_disguise_of_an_address_has_its_class(number in any::<u32>()) {
            let plain = Ipv4Addr::from_bits(number);
            let class = classify(plain.into());
            prop_assert_eq!(classify(plain.to_ipv6_mapped().into()), class);
            let [a, b, c, d] = plain.octets();
            let nat64 = Ipv6Addr::new(
                0x64, 0xff9b, 0, 0, 0, 0, u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]),
            );
            prop_assert_eq!(classify(nat64.into()), class);
            // The compatible form, the 6to4 form and the local NAT64 form are refused whatever is inside.
            prop_assert!(classify(Ipv6Addr::from_bits(u128::from(number)).into()).is_some());
            prop_assert!(classify(Ipv6Addr::from_bits((0x2002 << 112) | (u128::from(number) << 80)).into()).is_some());
        }

        #[test]
        fn the_standard_library_agrees_on_what_it_knows(number in any::<u32>()) {
            let address = Ipv4Addr::from_bits(number);
            let known = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_broadcast() || address.is_documentation()
                || address.is_unspecified();
            prop_assert!(!known || classify(address.into()).is_some());
        }

        #[test]
        fn only_global_unicast_is_public(number in any::<u128>()) {
            let address = Ipv6Addr::from_bits(number);
            let public = classify(address.into()).is_none();
            let disguised = address.to_ipv4_mapped().is_some() || translated(address).is_some();
            prop_assert!(!public || disguised || number >> 125 == 1);
        }

        #[test]
        fn a_network_is_read_or_refused(text in "\\PC{0,30}") {
            let _ = text.parse::<Network>();
        }
    }
}
