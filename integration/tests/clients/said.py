"""An operator of kopf: it copies what its objects say into ConfigMaps and annotations, and holds them by a finalizer."""

import kopf
from kubernetes import client


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.level = 30
    settings.persistence.finalizer = "kopf.example.com/hold"


@kopf.on.create("kopfs")
@kopf.on.update("kopfs", field="spec")
def write(spec, name, namespace, body, patch, **_):
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"say": spec["say"]}}
    kopf.adopt(configmap, owner=body)
    core = client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, configmap)
    except client.rest.ApiException as error:
        if error.status != 409:
            raise
        core.patch_namespaced_config_map(name, namespace, configmap)
    patch.metadata.annotations["said"] = spec["say"]


@kopf.on.delete("kopfs")
def remember(name, namespace, **_):
    client.CoreV1Api().create_namespaced_config_map(namespace, {"metadata": {"name": f"{name}-gone"}})
