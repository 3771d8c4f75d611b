//! Serves the webhooks of a program.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::webhooks::Webhooks;
use crate::certificates::Certificates;
use crate::configuration::Described;
use crate::endpoint::Endpoint;
use crate::error::WebhookError;
use crate::server::{Installer, Routes, Start, Target, WebhookServer, start};

impl Webhooks {
    /// Serves the webhooks on an address, and applies the configurations.
    ///
    /// The order is: certificate, server, and the configurations in the background. An apply or a removal that fails
    /// does not end the server. It is tried again after a delay that grows from 1 second to 1 minute, and is an
    /// [alert](crate::WebhookHealth::alerts) meanwhile; [`WebhookServer::applied`] waits for the first success.
    ///
    /// `/livez`, `/healthz` and `/readyz` answer probes, also over TLS. Connections are HTTP/1.1, at most 1,024 at
    /// once.
    ///
    /// # Errors
    ///
    /// A name, the certificates or the address is invalid. Nothing is served and no configuration is applied then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing is served and no configuration is applied. The Secret of the certificates may
    /// have been written.
    pub async fn serve(
        self,
        address: &str,
        certificates: Certificates,
    ) -> Result<WebhookServer, WebhookError> {
        self.check()?;
        // Every replica serves webhooks, so these writes do not need the lease.
        let client = self.factory.unfenced_client();
        let unusable = |source| WebhookError::Listen {
            address: address.to_owned(),
            source,
        };
        // Bound first, because a local `Endpoint` and the Service need the actual port.
        let listener = TcpListener::bind(address).await.map_err(unusable)?;
        let bound = listener.local_addr().map_err(unusable)?;
        let targets = self.targets();
        let mut names: Vec<String> = self.endpoint.iter().flat_map(Endpoint::names).collect();
        let endpoint = self.endpoint.map(|endpoint| endpoint.to(bound));
        names.extend(endpoint.iter().flat_map(Endpoint::names));
        // Without an `Endpoint` another program installs the configurations, and this program does not know when
        // clients trust an authority.
        let called = endpoint.as_ref().and_then(Endpoint::called);
        let keeper = certificates.load(client.clone(), names, called).await?;
        let described = self.described;
        let installer = endpoint.map(|endpoint| Installer {
            described,
            endpoint,
            client,
            port: bound.port(),
        });
        let routes = Routes {
            targets,
            factory: self.factory,
            limits: self.limits,
            metrics: self.metrics,
        };
        start(Start {
            listener,
            address: bound,
            keeper,
            routes,
            installer,
        })
    }

    fn targets(&self) -> HashMap<String, Target> {
        // A hook and its handler are added together, so they correspond by index.
        let hooks = self.described.hooks.iter().zip(&self.handlers);
        let admission = hooks.map(|((role, hook), handler)| {
            let target =
                Target::Admission(self.described.full_name(&hook.name), Arc::clone(handler));
            (role.path(&hook.name), target)
        });
        let conversions = self.conversions.iter().map(|(definition, convert)| {
            let path = Described::conversion_path(definition);
            (path, Target::Conversion(Arc::clone(convert)))
        });
        admission.chain(conversions).collect()
    }
}
