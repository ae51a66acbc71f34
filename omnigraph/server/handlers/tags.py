"""List, create, show and delete tags."""

from omnigraph.history.tags import Tag
from omnigraph.server.call import ServerCall
from omnigraph.server.models.history import TagListOutput, TagOutput
from omnigraph.server.models.requests import TagCreateRequest
from omnigraph.server.wire.answer import Answer, json_answer


def list_tags(call: ServerCall) -> Answer:
    """List all tags."""
    return json_answer(TagListOutput(tags=[_tag_output(tag) for tag in call.graph_for_read().tags.values()]))


def get_tag(call: ServerCall) -> Answer:
    """Return one tag."""
    return json_answer(_tag_output(call.graph_for_read().tags[call.path_values["tag"]]))


def create_tag(call: ServerCall) -> Answer:
    """Tag a revision, or the head of a branch."""
    body = call.body_as(TagCreateRequest)
    tag = call.graph_for_write(body.branch).tags.create(body.name, body.revision, message=body.message)
    return json_answer(_tag_output(tag))


def delete_tag(call: ServerCall) -> Answer:
    """Delete a tag, and return it."""
    tags = call.graph_for_write().tags
    tag = tags[call.path_values["tag"]]
    tags.delete(tag.name)
    return json_answer(_tag_output(tag))


def _tag_output(tag: Tag) -> TagOutput:
    return TagOutput(
        name=tag.name,
        graph_commit_id=tag.commit_id,
        graph_branch=tag.branch,
        created_at=tag.created_at,
        actor_id=tag.actor,
        message=tag.message,
    )
