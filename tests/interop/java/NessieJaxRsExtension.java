package org.projectnessie.jaxrs.ext;

import java.net.URI;
import java.util.function.Supplier;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.projectnessie.client.NessieClientBuilder;
import org.projectnessie.client.api.NessieApiV2;
import org.projectnessie.client.ext.NessieClientResolver;
import org.projectnessie.model.Branch;
import org.projectnessie.model.Reference;

/**
 * Replaces the released extension of this name, which starts a server in the test process. Tests
 * reach the server at the system property {@code nessie.uri}. Its repository is empty before each
 * test: only {@code main}, without a commit.
 */
public class NessieJaxRsExtension extends NessieClientResolver implements BeforeEachCallback {
  private static final URI SERVER = URI.create(System.getProperty("nessie.uri"));
  private static final String NO_ANCESTOR =
      "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d";

  /** The released class serves this store; the server at the URL has its own. */
  public static NessieJaxRsExtension jaxRsExtension(Supplier<?> unusedStore) {
    return new NessieJaxRsExtension();
  }

  @Override
  protected URI getBaseUri(ExtensionContext context) {
    return SERVER;
  }

  @Override
  public void beforeEach(ExtensionContext context) throws Exception {
    try (NessieApiV2 api =
        NessieClientBuilder.createClientBuilder("HTTP", null)
            .withUri(SERVER.resolve("api/v2"))
            .build(NessieApiV2.class)) {
      Branch main = api.getDefaultBranch();
      for (Reference reference : api.getAllReferences().get().getReferences()) {
        if (!reference.getName().equals(main.getName())) {
          api.deleteReference().reference(reference).delete();
        }
      }
      if (!NO_ANCESTOR.equals(main.getHash())) {
        Branch empty = Branch.of(main.getName(), NO_ANCESTOR);
        api.assignReference().reference(main).assignTo(empty).assign();
      }
    }
  }
}
