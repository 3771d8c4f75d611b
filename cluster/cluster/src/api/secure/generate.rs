//! An authority and a certificate for a server on this machine.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::tls::{Identity, ServingCertificate};

/// The names under which a server on this machine is reached.
const NAMES: [&str; 7] = [
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Makes both, for an address too if it is one at which the server is reached.
pub(super) fn identity(address: Option<IpAddr>) -> Result<Identity, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority
        .distinguished_name
        .push(DnType::CommonName, "lariat authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(names(address))?;
    server
        .distinguished_name
        .push(DnType::CommonName, "lariat cluster");
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    Ok(Identity::ServingCertificate(ServingCertificate {
        certificates: certificate.pem(),
        key: key.serialize_pem(),
        authority: authority.pem(),
    }))
}

/// Returns all names of a server that listens on an address.
fn names(address: Option<IpAddr>) -> Vec<String> {
    let mut names = NAMES.map(str::to_owned).to_vec();
    let own = address
        // No client connects to 0.0.0.0, and the loopback addresses are among the names.
        .filter(|address| !address.is_unspecified())
        .map(|address| address.to_string())
        .filter(|name| !NAMES.contains(&name.as_str()));
    names.extend(own);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_among_the_names() {
        let check = |address: &str, more: usize| {
            let names = names(address.parse().ok());
            assert_eq!(names.len(), NAMES.len() + more, "{names:?}");
            assert!(more == 0 || names.iter().any(|name| name == address));
        };
        check("10.0.0.7", 1);
        check("fd00::7", 1);
        check("127.0.0.1", 0);
        check("0.0.0.0", 0);
        check("::", 0);
    }
}
