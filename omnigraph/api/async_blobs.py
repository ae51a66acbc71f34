"""`AsyncBlob`, the asynchronous interface to a blob. Reads run in the thread pool."""

from collections.abc import AsyncIterator
from os import PathLike

from omnigraph.api.blobs import CHUNK_BYTES, Blob
from omnigraph.api.data_files import ProgressOption
from omnigraph.api.threads import AsyncFacet, in_thread, iterate, run


class AsyncBlob(AsyncFacet[Blob]):
    """A blob at a given commit. `sync` is the same blob with blocking methods; `sync.open()` returns a file object."""

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.sync.size

    @property
    def commit_id(self) -> str:
        """The commit that the blob is read from."""
        return self.sync.commit_id

    async def media_type(self) -> str:
        """Return the recorded media type, or one guessed from the first bytes."""
        return await run(lambda: self.sync.media_type)

    async def etag(self) -> str:
        """Return the ETag. The first call reads the whole blob."""
        return await run(lambda: self.sync.etag)

    async def content_hash(self) -> str:
        """Return the SHA-256 hash of the bytes. The first call reads the whole blob."""
        return await run(lambda: self.sync.content_hash)

    def iter_chunks(
        self, chunk_bytes: int = CHUNK_BYTES, *, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes in chunks, as in `async for chunk in blob.iter_chunks()`."""
        return iterate(self.sync.iter_chunks(chunk_bytes, start=start, stop=stop))

    async def save(
        self,
        path: str | PathLike[str],
        *,
        start: int = 0,
        stop: int | None = None,
        progress: ProgressOption = None,
    ) -> int:
        """Write the blob, or a range of it, to a file; see `Blob.save`."""
        return await run(self.sync.save, path, start=start, stop=stop, progress=progress)

    read = in_thread(Blob.read)
    verify = in_thread(Blob.verify)
    require_match = in_thread(Blob.require_match)
