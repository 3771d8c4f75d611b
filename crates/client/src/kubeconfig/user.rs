//! The credentials of a user.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use kube::config::{AuthInfo, AuthProviderConfig};

use super::entry::Entry;
use super::plugin;

pub(super) const TWO_METHODS: &str = "has a token and a password; remove one of the two";

/// Returns the credentials of a user.
pub(super) fn auth_info(user: &Entry<'_>, cluster: &Entry<'_>) -> Result<AuthInfo, String> {
    let mut auth = AuthInfo {
        token: user
            .text("token")?
            .map(str::trim)
            .filter(|token| !token.is_empty())
            .map(Into::into),
        token_file: user.path("tokenFile")?,
        ..AuthInfo::default()
    };
    let (name, password) = (user.text("username")?, user.text("password")?);
    let has_both = auth.token.is_some() && (name.is_some() || password.is_some());
    if has_both {
        return Err(user.wrong(TWO_METHODS));
    }
    // A password without a name is not sent, as in client-go.
    if let Some(name) = name {
        auth.username = Some(name.to_owned());
        auth.password = Some(password.unwrap_or_default().into());
    }
    certificate(user, &mut auth)?;
    impersonation(user, &mut auth)?;
    let exec = user.object("exec")?;
    let provider = user.object("auth-provider")?;
    if exec.is_some() && provider.is_some() {
        return Err(user.wrong("has an exec plugin and an auth-provider; remove one of the two"));
    }
    let exec = exec
        .map(|exec| plugin::exec_config(&exec, cluster))
        .transpose()?;
    auth.exec = exec.filter(|_| !has_credentials(&auth));
    auth.auth_provider = provider.map(|entry| auth_provider(&entry)).transpose()?;
    Ok(auth)
}

/// Reads the client certificate and its key: data, or else files.
fn certificate(user: &Entry<'_>, auth: &mut AuthInfo) -> Result<(), String> {
    let certificate = user.data("client-certificate-data")?;
    let key = user.data("client-key-data")?;
    let certificate_file = user
        .file("client-certificate")?
        .filter(|_| certificate.is_none());
    // A key without a certificate is not used, as in client-go.
    if certificate.is_none() && certificate_file.is_none() {
        return Ok(());
    }
    let key_file = user.file("client-key")?.filter(|_| key.is_none());
    if key.is_none() && key_file.is_none() {
        return Err(user.wrong("has a client certificate without client-key-data or client-key"));
    }
    auth.client_certificate_data = certificate.map(|pem| BASE64.encode(pem));
    auth.client_certificate = certificate_file;
    auth.client_key_data = key.map(|pem| BASE64.encode(pem).into());
    auth.client_key = key_file;
    Ok(())
}

fn impersonation(user: &Entry<'_>, auth: &mut AuthInfo) -> Result<(), String> {
    let list = |texts: Vec<String>| Some(texts).filter(|texts| !texts.is_empty());
    auth.impersonate = user.text("as")?.map(str::to_owned);
    auth.impersonate_uid = user.text("as-uid")?.map(str::to_owned);
    auth.impersonate_groups = list(user.texts("as-groups")?);
    if let Some(extra) = user.object("as-user-extra")? {
        let names = extra.members().map(|(name, _)| name);
        let extra = names.map(|name| Ok((name.clone(), extra.texts(name)?)));
        let extra: HashMap<_, _> = extra.collect::<Result<_, String>>()?;
        auth.impersonate_user_extra = Some(extra).filter(|extra| !extra.is_empty());
    }
    let has_more = auth.impersonate_uid.is_some()
        || auth.impersonate_groups.is_some()
        || auth.impersonate_user_extra.is_some();
    if has_more && auth.impersonate.is_none() {
        return Err(user.wrong("has as-uid, as-groups or as-user-extra without as"));
    }
    Ok(())
}

fn auth_provider(entry: &Entry<'_>) -> Result<AuthProviderConfig, String> {
    let config = entry.object("config")?;
    let members = config.iter().flat_map(Entry::members);
    let texts =
        members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Ok(AuthProviderConfig {
        name: entry.text("name")?.unwrap_or_default().to_owned(),
        config: texts.collect(),
        other: Default::default(),
    })
}

pub(super) fn has_credentials(auth: &AuthInfo) -> bool {
    auth.token.is_some()
        || auth.token_file.is_some()
        || auth.username.is_some()
        || auth.client_certificate.is_some()
        || auth.client_certificate_data.is_some()
        || auth.exec.is_some()
        || auth.auth_provider.is_some()
}

/// Keeps the impersonated user only.
pub(super) fn without_credentials(auth: AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: auth.impersonate,
        impersonate_uid: auth.impersonate_uid,
        impersonate_groups: auth.impersonate_groups,
        impersonate_user_extra: auth.impersonate_user_extra,
        ..AuthInfo::default()
    }
}
