import org.junit.jupiter.api.extension.RegisterExtension;
import org.projectnessie.jaxrs.ext.NessieJaxRsExtension;
import org.projectnessie.jaxrs.tests.BaseTestNessieRest;

/** Nessie's own tests of its REST API, released as an abstract class. */
class TestRest extends BaseTestNessieRest {
  @RegisterExtension
  static NessieJaxRsExtension server = NessieJaxRsExtension.jaxRsExtension(() -> null);
}
