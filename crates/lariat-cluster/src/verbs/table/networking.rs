//! Rows of Services and what belongs to them.

use serde_json::Value;

use super::column::{AGE, NAME, Printer, text, wide};
use super::row::{NONE, Row, first_of};

pub(super) const SERVICES: Printer = Printer {
    columns: &[
        NAME,
        text("Type"),
        text("Cluster-IP"),
        text("External-IP"),
        text("Port(s)"),
        AGE,
        wide("Selector"),
    ],
    cells: |service| {
        let address = service.text_or("/spec/clusterIPs/0", service.text("/spec/clusterIP"));
        let ports: Vec<String> = service.rows("/spec/ports").map(port).collect();
        let ports = if ports.is_empty() {
            NONE.to_owned()
        } else {
            ports.join(",")
        };
        vec![
            service.name().into(),
            service.text("/spec/type").into(),
            if address.is_empty() { NONE } else { address }.into(),
            external_address(service).into(),
            ports.into(),
            service.age().into(),
            service.labels("/spec/selector").into(),
        ]
    },
};

fn port(port: Row<'_>) -> String {
    let (number, protocol) = (port.number("/port"), port.text("/protocol"));
    match port.number("/nodePort") {
        0 => format!("{number}/{protocol}"),
        node_port => format!("{number}:{node_port}/{protocol}"),
    }
}

fn external_address(service: Row<'_>) -> String {
    let given = service.join("/spec/externalIPs", ",");
    match service.text("/spec/type") {
        "ClusterIP" | "NodePort" if given.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => given,
        "LoadBalancer" => match (balancer(service), given) {
            (balancer, given) if balancer.is_empty() && given.is_empty() => "<pending>".to_owned(),
            (balancer, given) if balancer.is_empty() || given.is_empty() => balancer + &given,
            (balancer, given) => format!("{balancer},{given}"),
        },
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Writes the addresses of a load balancer.
fn balancer(object: Row<'_>) -> String {
    let mut addresses: Vec<&str> = object
        .rows("/status/loadBalancer/ingress")
        .map(|ingress| ingress.text_or("/ip", ingress.text("/hostname")))
        .filter(|address| !address.is_empty())
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

pub(super) const INGRESSES: Printer = Printer {
    columns: &[
        NAME,
        text("Class"),
        text("Hosts"),
        text("Address"),
        text("Ports"),
        AGE,
    ],
    cells: |ingress| {
        let annotated = "/metadata/annotations/kubernetes.io~1ingress.class";
        let class = ingress.text_or("/spec/ingressClassName", ingress.text(annotated));
        let ports = if ingress.list("/spec/tls").is_empty() {
            "80"
        } else {
            "80, 443"
        };
        vec![
            ingress.name().into(),
            if class.is_empty() { NONE } else { class }.into(),
            hosts(ingress).into(),
            balancer(ingress).into(),
            ports.into(),
            ingress.age().into(),
        ]
    },
};

/// Writes the hosts of the first rules; more than three rules are only counted.
fn hosts(ingress: Row<'_>) -> String {
    const SHOWN: usize = 3;
    let hosts: Vec<&str> = ingress
        .rows("/spec/rules")
        .map(|rule| rule.text("/host"))
        .filter(|host| !host.is_empty())
        .take(SHOWN)
        .collect();
    let rules = ingress.list("/spec/rules").len();
    match hosts.len() {
        0 => "*".to_owned(),
        SHOWN if rules > SHOWN => format!("{} + {} more...", hosts.join(","), rules - SHOWN),
        _ => hosts.join(","),
    }
}

pub(super) const INGRESS_CLASSES: Printer = Printer {
    columns: &[NAME, text("Controller"), text("Parameters"), AGE],
    cells: |class| {
        let parameters = if class.has("/spec/parameters") {
            reference(class.at("/spec/parameters"))
        } else {
            NONE.to_owned()
        };
        vec![
            class.name().into(),
            class.text("/spec/controller").into(),
            parameters.into(),
            class.age().into(),
        ]
    },
};

fn reference(to: Row<'_>) -> String {
    let kind = lariat_apimachinery::kinds::qualified(to.text("/kind"), to.text("/apiGroup"));
    format!("{kind}/{}", to.text("/name"))
}

pub(super) const NETWORK_POLICIES: Printer = Printer {
    columns: &[NAME, text("Pod-Selector"), AGE],
    cells: |policy| {
        vec![
            policy.name().into(),
            policy.selector_or_none("/spec/podSelector").into(),
            policy.age().into(),
        ]
    },
};

pub(super) const ENDPOINTS: Printer = Printer {
    columns: &[NAME, text("Endpoints"), AGE],
    cells: |endpoints| {
        let shown = if endpoints.list("/subsets").is_empty() {
            NONE.to_owned()
        } else {
            first_of(&addresses(endpoints), 3)
        };
        vec![
            endpoints.name().into(),
            shown.into(),
            endpoints.age().into(),
        ]
    },
};

/// Returns every address of every subset with each of its ports.
fn addresses(endpoints: Row<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for subset in endpoints.rows("/subsets") {
        let addresses = || {
            subset
                .rows("/addresses")
                .map(|address| address.text("/ip").to_owned())
        };
        if subset.list("/ports").is_empty() {
            all.extend(addresses());
        }
        for port in subset.rows("/ports") {
            let port = port.number("/port");
            all.extend(addresses().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    all
}

pub(super) const ENDPOINT_SLICES: Printer = Printer {
    columns: &[
        NAME,
        text("AddressType"),
        text("Ports"),
        text("Endpoints"),
        AGE,
    ],
    cells: |slice| {
        let ports: Vec<String> = slice
            .rows("/ports")
            .map(|port| port.scalar_or("/port", "*"))
            .collect();
        let endpoints: Vec<String> = slice
            .rows("/endpoints")
            .flat_map(|endpoint| endpoint.list("/addresses"))
            .map(|address| address.as_str().unwrap_or_default().to_owned())
            .collect();
        let shown = |texts: &[String]| -> Value {
            if texts.is_empty() {
                "<unset>".into()
            } else {
                first_of(texts, 3).into()
            }
        };
        vec![
            slice.name().into(),
            slice.text("/addressType").into(),
            shown(&ports),
            shown(&endpoints),
            slice.age().into(),
        ]
    },
};

pub(super) const IP_ADDRESSES: Printer = Printer {
    columns: &[NAME, text("ParentRef"), AGE],
    cells: |address| {
        let parent = address.at("/spec/parentRef");
        let mut parts = vec![parent.text("/resource")];
        for part in ["/namespace", "/name"] {
            parts.extend(Some(parent.text(part)).filter(|text| !text.is_empty()));
        }
        let resource = lariat_apimachinery::kinds::qualified(parts[0], parent.text("/group"));
        parts[0] = &resource;
        vec![
            address.name().into(),
            parts.join("/").into(),
            address.age().into(),
        ]
    },
};

pub(super) const SERVICE_CIDRS: Printer = Printer {
    columns: &[NAME, text("CIDRs"), AGE],
    cells: |cidr| {
        vec![
            cidr.name().into(),
            cidr.join("/spec/cidrs", ",").into(),
            cidr.age().into(),
        ]
    },
};
