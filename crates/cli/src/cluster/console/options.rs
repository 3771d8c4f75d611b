//! The options of the console.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::ValueHint;

use crate::token::Token;

/// Whether and where there is a console.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct ConsoleOptions {
    /// Serve a web page here: objects, watches, requests, and faults to inject.
    ///
    /// On a loopback address every user of the machine may use it, unless a token is required.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, help_heading = "Console")]
    pub(crate) console: Option<SocketAddr>,
    /// Require the bearer token in this file for the page [default: the cluster's].
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        requires = "console",
        help_heading = "Console"
    )]
    pub(crate) console_token_file: Option<PathBuf>,
}

impl ConsoleOptions {
    /// Returns the address and the token, or `None` if there is to be no console.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or others reach the address and there is no token.
    pub(crate) fn read(
        &self,
        of_cluster: Option<&str>,
    ) -> Result<Option<(SocketAddr, Option<String>)>> {
        let Some(address) = self.console else {
            return Ok(None);
        };
        let file = self.console_token_file.clone().map(Token::File);
        let own = file.map(|file| file.read()).transpose()?;
        // The console can do what the cluster's administrator can, so the same token is the default.
        let token = own.or_else(|| of_cluster.map(str::to_owned));
        ensure!(
            token.is_some() || address.ip().is_loopback(),
            "others reach the console on {address}: give it a token, by --console-token-file or --token-file"
        );
        Ok(Some((address, token)))
    }
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse()
        .map_err(|_| "give an IP address and a port, such as 127.0.0.1:9091")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, of_cluster: Option<&str>) -> Result<Option<String>, String> {
        let options = ConsoleOptions {
            console: Some(address.parse().unwrap()),
            console_token_file: None,
        };
        let read = options.read(of_cluster);
        read.map(|read| read.and_then(|(_, token)| token))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn strangers_need_a_token() {
        assert_eq!(check("127.0.0.1:0", None), Ok(None));
        assert_eq!(check("[::1]:0", Some("t")), Ok(Some("t".into())));
        assert_eq!(check("0.0.0.0:0", Some("t")), Ok(Some("t".into())));
        let refused = check("0.0.0.0:9091", None).unwrap_err();
        assert_eq!(
            refused,
            "others reach the console on 0.0.0.0:9091: give it a token, by --console-token-file or --token-file"
        );
        assert_eq!(ConsoleOptions::default().read(Some("t")).unwrap(), None);
    }
}
