//! The content of the files that a configuration refers to.
//!
//! Files are read here and nowhere else, once for each login, so that the certificate that is compared is the one that
//! is used. An unusable file makes the whole login fail, and the previous one is kept.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderValue;
use kube::Config;
use kube::client::ConfigExt;
use kube::config::{AuthInfo, ExecConfig};
use secrecy::ExposeSecret;

use super::error::CredentialError;
use super::exec::Credential;
use super::login::Signer;
use crate::pem;

/// Returns the exec plugin, unless other credentials take precedence.
pub(super) fn plugin(config: &Config) -> Option<&ExecConfig> {
    let user = &config.auth_info;
    let has_other = user.auth_provider.is_some() || has_password(user);
    let has_token = inline_token(user).is_some() || token_file(user).is_some();
    user.exec.as_ref().filter(|_| !has_other && !has_token)
}

/// Returns whether there are files that may change.
pub(super) fn has_files(config: &Config) -> bool {
    let user = &config.auth_info;
    let has_data = is_set(user.client_certificate_data.as_deref());
    let has_certificate = is_set(user.client_certificate.as_deref()) && !has_data;
    token_file(user).is_some() || has_certificate || config.root_cert_file.is_some()
}

/// Returns whether there are certificates, which TLS may refuse.
pub(super) fn has_certificates(config: &Config) -> bool {
    has_client_certificate(config) || config.root_cert.is_some()
}

/// Returns whether there is a client certificate.
pub(super) fn has_client_certificate(config: &Config) -> bool {
    is_set(config.auth_info.client_certificate_data.as_deref())
}

/// Reads the files of a configuration into it, and adds the credential of a plugin.
///
/// `is_first` means that there is no login to keep if the file of the token cannot be used.
pub(super) fn read(
    config: &Config,
    credential: Option<&Credential>,
    is_first: bool,
) -> Result<Config, CredentialError> {
    let mut config = config.clone();
    let user = &mut config.auth_info;
    if let Some(credential) = credential {
        user.exec = None;
        user.token = credential.token.clone().map(Into::into);
        if let Some((certificate, key)) = &credential.certificate {
            user.client_certificate_data = Some(BASE64.encode(certificate));
            user.client_key_data = Some(BASE64.encode(key).into());
        }
    }
    if let Some(file) = token_file(user) {
        match token_of(file) {
            Ok(token) => user.token = Some(token.into()),
            // As in client-go, the token beside the file is there for this.
            Err(_) if is_first && inline_token(user).is_some() => {}
            Err(problem) => return Err(CredentialError::Unusable(problem)),
        }
        user.token_file = None;
    }
    certificates(&mut config).map_err(CredentialError::Unusable)?;
    Ok(config)
}

/// Reads a token. An empty one would make the client anonymous, which the API server answers 403, not 401.
fn token_of(file: &str) -> Result<String, String> {
    let text = fs::read_to_string(file)
        .map_err(|error| format!("the token file {file:?} cannot be read: {error}"))?;
    match text.trim() {
        "" => Err(format!("the token file {file:?} is empty")),
        token => Ok(token.to_owned()),
    }
}

/// Reads the certificates of the user and the server.
fn certificates(config: &mut Config) -> Result<(), String> {
    let user = &mut config.auth_info;
    let certificate_file = user.client_certificate.take();
    if !is_set(user.client_certificate_data.as_deref()) {
        user.client_certificate_data = base64_of(certificate_file)?;
    }
    let key_file = user.client_key.take();
    let has_key = user
        .client_key_data
        .as_ref()
        .is_some_and(|key| !key.expose_secret().is_empty());
    if !has_key {
        user.client_key_data = base64_of(key_file)?.map(Into::into);
    }
    if let Some(file) = config.root_cert_file.take() {
        let pem = fs::read(&file).map_err(|error| unreadable(&file.to_string_lossy(), &error))?;
        let certificates = pem::certificates(&pem);
        let wrong = |problem| format!("the certificate authority {file:?} {problem}");
        config.root_cert = Some(certificates.map_err(wrong)?);
    }
    Ok(())
}

/// Reads a file, if there is one, as base64.
fn base64_of(file: Option<String>) -> Result<Option<String>, String> {
    let Some(file) = file.filter(|file| !file.is_empty()) else {
        return Ok(None);
    };
    let content = fs::read(&file).map_err(|error| unreadable(&file, &error))?;
    if content.trim_ascii().is_empty() {
        return Err(format!("the file {file:?} is empty"));
    }
    Ok(Some(BASE64.encode(content)))
}

fn unreadable(file: &str, error: &std::io::Error) -> String {
    format!("the file {file:?} cannot be read: {error}")
}

/// Returns how requests are signed.
pub(super) fn signer(config: &Config) -> Result<Signer, CredentialError> {
    let user = &config.auth_info;
    if user.auth_provider.is_some() {
        return Ok(config
            .auth_layer()?
            .map_or(Signer::Nothing, Signer::Provider));
    }
    let text = match (&user.username, &user.password, inline_token(user)) {
        (Some(name), Some(password), _) if !name.is_empty() => {
            let pair = format!("{name}:{}", password.expose_secret());
            format!("Basic {}", BASE64.encode(pair))
        }
        (_, _, Some(token)) => format!("Bearer {token}"),
        _ => return Ok(Signer::Nothing),
    };
    let problem = "the token has characters that a header cannot have; is it the right file?";
    let mut value =
        HeaderValue::from_str(&text).map_err(|_| CredentialError::Unusable(problem.to_owned()))?;
    value.set_sensitive(true);
    Ok(Signer::Header(value))
}

/// Returns a number that changes with the certificates and the other settings of TLS.
pub(super) fn fingerprint(config: &Config) -> u64 {
    let mut hasher = DefaultHasher::new();
    let user = &config.auth_info;
    user.client_certificate_data.hash(&mut hasher);
    let key = user
        .client_key_data
        .as_ref()
        .map(ExposeSecret::expose_secret);
    key.hash(&mut hasher);
    config.root_cert.hash(&mut hasher);
    config.proxy_url.hash(&mut hasher);
    config.tls_server_name.hash(&mut hasher);
    config.accept_invalid_certs.hash(&mut hasher);
    hasher.finish()
}

fn is_set(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

fn has_password(user: &AuthInfo) -> bool {
    is_set(user.username.as_deref()) && user.password.is_some()
}

fn token_file(user: &AuthInfo) -> Option<&str> {
    user.token_file.as_deref().filter(|file| !file.is_empty())
}

/// Returns the token of the configuration itself.
fn inline_token(user: &AuthInfo) -> Option<&str> {
    let token = user.token.as_ref()?.expose_secret().trim();
    Some(token).filter(|token| !token.is_empty())
}
