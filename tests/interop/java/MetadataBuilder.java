import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.MetadataUpdateParser;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.UpdateRequirement;
import org.apache.iceberg.UpdateRequirementParser;
import org.apache.iceberg.view.ViewMetadata;
import org.apache.iceberg.view.ViewMetadataParser;

/** Answers each line of standard input, a change of metadata, with the metadata that Iceberg's own builder makes of it. */
public class MetadataBuilder {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode answer = MAPPER.createObjectNode();
      try {
        JsonNode request = MAPPER.readTree(line);
        String made = request.path("view").asBoolean() ? view(request) : table(request);
        answer.set("metadata", MAPPER.readTree(made));
      } catch (RuntimeException error) {
        answer.put("error", error.getClass().getSimpleName());
        answer.put("message", String.valueOf(error.getMessage()));
      }
      out.println(answer);
    }
  }

  private static String table(JsonNode request) {
    TableMetadata base = null;
    TableMetadata.Builder builder = TableMetadata.buildFromEmpty(request.path("version").asInt(2));
    if (request.hasNonNull("base")) {
      base = TableMetadataParser.fromJson(request.get("location").asText(), request.get("base").toString());
      builder = TableMetadata.buildFrom(base);
    }
    for (JsonNode one : request.withArray("requirements")) {
      UpdateRequirement requirement = UpdateRequirementParser.fromJson(one.toString());
      requirement.validate(base);
    }
    for (JsonNode one : request.withArray("updates")) {
      MetadataUpdate update = MetadataUpdateParser.fromJson(one.toString());
      update.applyTo(builder);
    }
    return TableMetadataParser.toJson(builder.build());
  }

  private static String view(JsonNode request) {
    ViewMetadata.Builder builder = ViewMetadata.builder();
    ViewMetadata base = null;
    if (request.hasNonNull("base")) {
      base = ViewMetadataParser.fromJson(request.get("base").toString());
      builder = ViewMetadata.buildFrom(base);
    }
    for (JsonNode one : request.withArray("requirements")) {
      UpdateRequirementParser.fromJson(one.toString()).validate(base);
    }
    for (JsonNode one : request.withArray("updates")) {
      MetadataUpdateParser.fromJson(one.toString()).applyTo(builder);
    }
    return ViewMetadataParser.toJson(builder.build());
  }
}
