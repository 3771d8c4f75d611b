//! Kubeconfigs and the configurations that come of them.

use std::fs;
use std::path::PathBuf;

use kube::Config;
use kube::config::ExecInteractiveMode;
use secrecy::ExposeSecret;

use super::Kubeconfig;
use crate::proxy::ProxyVariables;

/// Settles a kubeconfig with this user and cluster.
fn settle(user: &str, cluster: &str) -> Result<Config, String> {
    let text = format!(
        "current-context: c\nclusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
    );
    settle_text(&text)
}

fn settle_text(text: &str) -> Result<Config, String> {
    Kubeconfig::parse(text.as_bytes())?.settle_with(&ProxyVariables::default())
}

const SERVER: &str = "server: 'https://10.0.0.1:6443'";

/// Returns the credentials that a user has, in words.
fn credentials(user: &str) -> String {
    let auth = match settle(user, SERVER) {
        Ok(config) => config.auth_info,
        Err(error) => return error,
    };
    let secret =
        |secret: Option<secrecy::SecretString>| secret.map(|it| it.expose_secret().to_owned());
    let members = [
        ("token", secret(auth.token)),
        ("file", auth.token_file),
        ("name", auth.username),
        ("password", secret(auth.password)),
        ("certificate", auth.client_certificate_data),
        ("key", secret(auth.client_key_data)),
        ("exec", auth.exec.and_then(|exec| exec.command)),
    ];
    let set = members
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    set.collect::<Vec<_>>().join(" ")
}

const EXEC: &str = "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login}";

#[test]
fn empty_members_of_users_are_missing() {
    for (user, expected) in [
        ("token: '', tokenFile: /t", "file=/t"),
        (&format!("token: '', {EXEC}")[..], "exec=login"),
        (&format!("tokenFile: '', {EXEC}"), "exec=login"),
        ("username: '', password: '', token: x", "token=x"),
        (&format!("username: '', password: '', {EXEC}"), "exec=login"),
        (
            "client-certificate-data: '', client-key-data: '', token: x",
            "token=x",
        ),
        (
            "client-certificate: '', client-key: '', token: x",
            "token=x",
        ),
        ("token: null, tokenFile: null, exec: null", ""),
        ("as: '', as-groups: [], as-user-extra: {}", ""),
    ] {
        assert_eq!(credentials(user), expected, "{user}");
    }
}

#[test]
fn credentials_have_the_precedence_of_client_go() {
    for (user, expected) in [
        ("token: \" x\\n\"", "token=x"),
        ("token: old, tokenFile: /t", "token=old file=/t"),
        (&format!("token: x, {EXEC}")[..], "token=x"),
        (&format!("tokenFile: /t, {EXEC}"), "file=/t"),
        (&format!("username: me, {EXEC}"), "name=me password="),
        ("username: me, password: pw", "name=me password=pw"),
        ("password: pw", ""),
        (
            "client-certificate-data: YQ==, client-key-data: Yg==",
            "certificate=YQ== key=Yg==",
        ),
        (
            &format!("client-certificate-data: YQ==, client-key-data: Yg==, {EXEC}"),
            "certificate=YQ== key=Yg==",
        ),
        ("client-key-data: Yg==, token: x", "token=x"),
        (
            "client-certificate-data: YQ==",
            "user \"u\" has a client certificate without client-key-data or client-key",
        ),
        (
            "token: x, username: me",
            "user \"u\" has a token and a password; remove one of the two",
        ),
        (
            "tokenFile: /t, username: me",
            "user \"u\" has a token and a password; remove one of the two",
        ),
        ("tokenFile: /t, password: pw", "file=/t"),
        (
            "token: 5",
            "user \"u\" has a token that is not a text; put it in quotes",
        ),
        (
            "client-certificate-data: '*'",
            "user \"u\" has a client-certificate-data that is not base64",
        ),
        (
            "as-uid: '5'",
            "user \"u\" has as-uid, as-groups or as-user-extra without as",
        ),
        (
            &format!("{EXEC}, auth-provider: {{name: oidc}}"),
            "user \"u\" has an exec plugin and an auth-provider; remove one of the two",
        ),
    ] {
        assert_eq!(credentials(user), expected, "{user}");
    }
}

#[test]
fn plugins_need_version_command_and_mode() {
    let exec = |members: &str| {
        settle(&format!("exec: {{{members}}}"), SERVER)
            .map(|config| config.auth_info.exec.expect("it has a plugin"))
    };
    let v1 = "apiVersion: client.authentication.k8s.io/v1, command: ./login";
    let plugin = exec(&format!(
        "{v1}, interactiveMode: Never, env: [{{name: A, value: null}}], args: [x, null]"
    ));
    let plugin = plugin.unwrap();
    assert_eq!(plugin.interactive_mode, Some(ExecInteractiveMode::Never));
    assert_eq!(plugin.args.unwrap(), ["x", ""]);
    assert_eq!(plugin.env.unwrap()[0]["value"], "");
    for (members, expected) in [
        (
            v1.to_owned(),
            "needs the interactiveMode Never, IfAvailable or Always",
        ),
        (
            format!("{v1}, interactiveMode: Sometimes"),
            "needs the interactiveMode Never, IfAvailable or Always",
        ),
        ("command: login".to_owned(), "has no apiVersion"),
        (
            "command: login, apiVersion: client.authentication.k8s.io/v1alpha1".to_owned(),
            "needs the apiVersion client.authentication.k8s.io/v1",
        ),
        (
            "apiVersion: client.authentication.k8s.io/v1".to_owned(),
            "has no command",
        ),
        (
            format!("{v1}, interactiveMode: Never, env: [{{value: x}}]"),
            "env[0] has no name",
        ),
    ] {
        let error = exec(&members).unwrap_err();
        assert!(
            error.starts_with("user \"u\": exec") && error.ends_with(expected),
            "{error}"
        );
    }
}

#[test]
fn empty_members_of_clusters_are_missing() {
    let config = settle(
        "",
        &format!("{SERVER}, tls-server-name: '', proxy-url: '', certificate-authority-data: ''"),
    );
    let config = config.unwrap();
    assert_eq!(
        (config.tls_server_name, config.proxy_url, config.root_cert),
        (None, None, None)
    );
    for (cluster, expected) in [
        ("server: ''", "cluster \"k\" has no server"),
        (
            &format!("{SERVER}, certificate-authority-data: YQ==")[..],
            "cluster \"k\" has a certificate-authority-data that has no certificate in PEM",
        ),
        (
            &format!("{SERVER}, proxy-url: 'socks4://me:hunter2@a'"),
            "cluster \"k\" has a proxy-url that is not a URL with the scheme http, https or socks5",
        ),
        (
            &format!("{SERVER}, proxy-url: 'me:hunter2@a:1'"),
            "cluster \"k\" has a proxy-url that is not a URL with the scheme http, https or socks5",
        ),
        (
            &format!("{SERVER}, insecure-skip-tls-verify: true, certificate-authority-data: YQ=="),
            "cluster \"k\" has insecure-skip-tls-verify and a certificate authority; remove one of the two",
        ),
    ] {
        assert_eq!(settle("", cluster).unwrap_err(), expected);
    }
}

#[test]
fn unused_entries_may_be_anything() {
    let used = "clusters: [{name: k, cluster: {server: 'https://a'}}, X]\nusers: [{name: u, user: {token: x}}, X]\n\
                contexts: [{name: c, context: {cluster: k, user: u}}, X]\ncurrent-context: c\n";
    for unused in [
        "{name: x, context: {user: u}}",
        "{name: x, user: {exec: {env: [{name: A, value: null}]}}}",
        "{name: x, user: {exec: {interactiveMode: Sometimes}}}",
        "{user: {token: 5}}",
        "{cluster: {server: [1]}}",
        "{name: [], cluster: 5}",
        "null",
        "5",
        "{name: x}, {name: x}",
    ] {
        let config = settle_text(&used.replace('X', unused));
        assert!(
            config.is_ok_and(|config| config.auth_info.token.is_some()),
            "{unused}"
        );
    }
    let twice = format!(
        "{}clusters: [{{name: k, cluster: {{server: 'https://b'}}}}]\n",
        used.replace(", X", "")
    );
    assert_eq!(
        settle_text(&twice).unwrap().cluster_url.host(),
        Some("b"),
        "the last key counts"
    );
    let named_twice = used.replace('X', "{name: k}, {name: u}, {name: c}");
    let error = settle_text(&named_twice).unwrap_err();
    assert_eq!(error, "context \"c\" is there twice; remove one of the two");
}

#[test]
fn users_of_urls_are_kept_out_of_the_url() {
    let config = settle("", "server: 'https://me:p%40w@10.0.0.1/k8s'").unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://10.0.0.1/k8s");
    assert_eq!(config.auth_info.username.as_deref(), Some("me"));
    assert_eq!(config.auth_info.password.unwrap().expose_secret(), "p@w");
    let config = settle("token: x", "server: 'https://me:pw@10.0.0.1'").unwrap();
    assert!(config.auth_info.username.is_none() && config.auth_info.token.is_some());
}

#[test]
fn credentials_are_not_sent_without_tls() {
    let token = |server: &str| {
        let config = settle("token: x, as: ann", &format!("server: '{server}'")).unwrap();
        assert_eq!(config.auth_info.impersonate.as_deref(), Some("ann"));
        config.auth_info.token.is_some()
    };
    assert!(token("https://10.0.0.1") && token("http://127.0.0.1:1") && !token("http://10.0.0.1"));
    let two = "tokenFile: /t, username: me";
    assert!(settle(two, "server: 'http://10.0.0.1'").is_ok());
    assert!(settle(two, "server: 'http://127.0.0.1:1'").is_err());
    let old = "exec: {command: login, apiVersion: client.authentication.k8s.io/v1alpha1}";
    assert!(settle(old, "server: 'http://10.0.0.1'").is_ok());
    assert!(settle(old, "server: 'https://10.0.0.1'").is_err());
    let both = format!("token: x, {old}");
    assert!(settle(&both, "server: 'https://10.0.0.1'").is_err());
}

/// Files that are removed with it.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("lariat-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn settle(&self, paths: &[PathBuf]) -> Result<Config, String> {
        let merged = Kubeconfig::read(paths).map_err(|unusable| unusable.detail)?;
        merged.settle_with(&ProxyVariables::default())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn file(context: &str, server: &str, token: &str) -> String {
    format!(
        "current-context: '{context}'\nclusters: [{{name: k, cluster: {{server: 'https://{server}'}}}}]\n\
         users: [{{name: u, user: {{tokenFile: {token}}}}}]\ncontexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
    )
}

#[test]
fn the_first_file_wins_for_each_entry() {
    let files = Files::new("merge");
    let first = files.write(
        "first",
        "current-context: ''\nusers: [{name: u, user: {tokenFile: own}}]\n",
    );
    let second = files.write("inner/second", file("c", "second", "other"));
    let third = files.write("third", file("x", "third", "third"));
    let missing = files.0.join("missing");
    let config = files
        .settle(&[
            first.clone(),
            missing.clone(),
            second.clone(),
            third.clone(),
        ])
        .unwrap();
    assert_eq!(config.cluster_url.host(), Some("second"));
    assert_eq!(
        config.auth_info.token_file,
        Some(files.0.join("own").display().to_string())
    );
    let config = files.settle(std::slice::from_ref(&second)).unwrap();
    assert_eq!(
        config.auth_info.token_file,
        Some(files.0.join("inner/other").display().to_string())
    );
    let error = files.settle(&[third.clone(), second]).unwrap_err();
    assert!(
        error.starts_with("it has no context \"x\", which is the current one; choose one of c"),
        "{error}"
    );
    assert_eq!(
        files.settle(&[missing.clone(), missing]).unwrap_err(),
        "none of the files exists"
    );
    let broken = files.write("broken", "users: [hunter2\n");
    let unusable = Kubeconfig::read(&[first, broken.clone()]).unwrap_err();
    assert_eq!(unusable.path, Some(broken));
    assert_eq!(unusable.detail, "it cannot be read as YAML, see line 1");
    let wrong = files.write("wrong", "users: [{name: u, user: {token: 5}}]\n");
    let error = files
        .settle(&[wrong.clone(), files.0.join("inner/second")])
        .unwrap_err();
    let expected = format!(
        "user \"u\" of {} has a token that is not a text; put it in quotes",
        wrong.display()
    );
    assert_eq!(error, expected);
}

#[test]
fn files_of_powershell_are_read() {
    let files = Files::new("utf16");
    let text = file("c", "a", "t");
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    let bytes: Vec<u8> = [0xff, 0xfe].into_iter().chain(units).collect();
    let path = files.write("config", bytes);
    assert_eq!(files.settle(&[path]).unwrap().cluster_url.host(), Some("a"));
    let path = files.write("config", format!("\u{feff}{text}"));
    assert_eq!(files.settle(&[path]).unwrap().cluster_url.host(), Some("a"));
}

#[test]
fn self_contained_kubeconfigs_refer_to_nothing_else() {
    let check = |text: &str| {
        Kubeconfig::parse(text.as_bytes())?
            .self_contained()
            .map(drop)
    };
    let with = |user: &str, cluster: &str| {
        format!(
            "current-context: c\nclusters: [{{name: k, cluster: {{{SERVER}, {cluster}}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n"
        )
    };
    assert_eq!(
        check(&with(
            "token: x, tokenFile: ''",
            "certificate-authority: ''"
        )),
        Ok(())
    );
    for (user, cluster) in [
        (EXEC, ""),
        ("auth-provider: {name: oidc}", ""),
        ("tokenFile: /t, token: x", ""),
        ("client-certificate: /c, client-key: /k", ""),
        ("client-certificate-data: YQ==, client-key: /k", ""),
        ("", "certificate-authority: /ca"),
    ] {
        let error = check(&with(user, cluster)).unwrap_err();
        assert!(
            error.contains("which a self-contained kubeconfig must not have"),
            "{error}"
        );
    }
}
