import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;

/** Answers each line of standard input, a metadata file, with what Iceberg's own parser and builder say: R refused, U accepted but no property can be set, A accepted. */
public class MetadataParser {
  private static final Map<String, String> PROPERTY = Map.of("k", "v");

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      out.println(line.contains("\"view-uuid\"") ? view(line) : table(line));
    }
  }

  private static String table(String json) {
    TableMetadata parsed;
    try {
      parsed = TableMetadataParser.fromJson("s3://b/t/1.metadata.json", json);
    } catch (RuntimeException error) {
      return "R " + message(error);
    }
    try {
      TableMetadataParser.toJson(TableMetadata.buildFrom(parsed).setProperties(PROPERTY).build());
      return "A";
    } catch (RuntimeException error) {
      return "U " + message(error);
    }
  }

  private static String view(String json) {
    ViewMetadata parsed;
    try {
      parsed = ViewMetadataParser.fromJson("s3://b/t/1.metadata.json", json);
    } catch (RuntimeException error) {
      return "R " + message(error);
    }
    try {
      ViewMetadataParser.toJson(ViewMetadata.buildFrom(parsed).setProperties(PROPERTY).build());
      return "A";
    } catch (RuntimeException error) {
      return "U " + message(error);
    }
  }

  private static String message(RuntimeException error) {
    return String.valueOf(error.getMessage()).replaceAll("\\s+", " ");
  }
}
