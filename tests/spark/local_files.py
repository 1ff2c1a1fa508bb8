"""Hadoop's local files without `chmod`.

Without its native library, Hadoop starts a process `chmod` for each file that it creates, and for
its checksum. A run of the tests creates thousands of files, whose permissions no test reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASS = "tests.LocalFiles"
SOURCE = """
package tests;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawFiles());
    }

    public static class RawFiles extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {}
    }
}
"""


def leave_permissions(spark: SparkSession) -> None:
    """Replaces the file system of `file:` in the Java of a session."""
    java: Any = spark._jvm
    # Spark's jars contain this compiler: a Java without `javac` is enough.
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.Thread.currentThread().getContextClassLoader())
    compiler.cook(SOURCE)
    system = java.org.apache.hadoop.fs.FileSystem
    classes = java.Class.forName(system._fqn).getDeclaredField("SERVICE_FILE_SYSTEMS")
    classes.setAccessible(True)
    classes.get(None).put("file", compiler.getClassLoader().loadClass(CLASS))
    # Instances of the former class are closed.
    system.closeAll()
