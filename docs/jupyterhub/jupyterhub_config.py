# JupyterHub's side of Firstbell: label each user's pod with the class that it comes for, so that Firstbell knows which
# reservation it fills. Paste into jupyterhub_config.py, or into hub.extraConfig of the Zero to JupyterHub chart.
#
# It works without this, too: pods without the label fill the oldest reservation that has places left.
import re


def firstbell_reference(spawner):
    """The class of this user, as the portal names it in its signals; empty where there is none.

    Here: the first of the user's groups that begins with "class-". Put your own rule in its place.
    """
    names = sorted(group.name for group in spawner.user.groups)
    return next((name.removeprefix("class-") for name in names if name.startswith("class-")), "")


def label_with_reference(spawner, pod):
    """KubeSpawner's modify_pod_hook: adds the label `firstbell.dev/reference`, if the value may be one."""
    reference = firstbell_reference(spawner)
    if re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", reference):
        pod.metadata.labels = {**(pod.metadata.labels or {}), "firstbell.dev/reference": reference}
    return pod


c.KubeSpawner.modify_pod_hook = label_with_reference  # noqa: F821  (JupyterHub gives c)
