"""What other tests rely on in the test cluster itself."""

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def a_config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_restarted_api_server_has_its_address_and_its_objects(kube_api):
    url = kube_api.url
    assert kube_api.api.send("POST", CONFIG_MAPS, a_config_map("kept"))[0] == 201

    kube_api.stop_apiserver()
    assert not kube_api.api.is_ready()
    kube_api.start_apiserver()

    assert kube_api.url == url
    assert kube_api.api.send("GET", f"{CONFIG_MAPS}/kept")[0] == 200


def test_the_audit_log_has_every_request_with_its_user_and_verb(kube_api):
    kube_api.api.send("POST", CONFIG_MAPS, a_config_map("audited"))
    kube_api.api.send("DELETE", f"{CONFIG_MAPS}/audited")

    def verbs() -> list[str]:
        return [
            event["verb"]
            for event in kube_api.audited()
            if event.get("objectRef", {}).get("name") == "audited"
            and event["user"]["username"] == "admin"
        ]

    kube_api.processes.wait_until(
        "audited requests", lambda: verbs() == ["create", "delete"], within=5
    )
