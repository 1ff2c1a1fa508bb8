package org.apache.iceberg.rest;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's reference server for the warehouse named by the first argument, on a free loopback port,
 * with its catalog at the JDBC URL of the second argument, or in memory for one client at a time.
 * The main class that Iceberg releases listens on all addresses; the catalog here is the same. Prints
 * its URL.
 */
public class ReferenceServer {
  public static void main(String[] arguments) throws Exception {
    Map<String, String> properties =
        Map.of(
            "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
            "uri", arguments.length > 1 ? arguments[1] : "jdbc:sqlite::memory:",
            "jdbc.schema-version", "V1",
            "warehouse", arguments[0]);
    Catalog catalog =
        CatalogUtil.buildIcebergCatalog("rest_backend", properties, new Configuration());
    RESTCatalogAdapter adapter =
        new RESTServerCatalogAdapter(new RESTCatalogServer.CatalogContext(catalog, properties));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(adapter)), "/*");
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    Server server = new Server(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    // Jetty refuses names with a percent sign otherwise.
    server
        .getConnectors()[0]
        .getConnectionFactory(HttpConnectionFactory.class)
        .getHttpConfiguration()
        .setUriCompliance(UriCompliance.UNSAFE);
    server.setHandler(context);
    server.start();
    System.out.println(
        "http://127.0.0.1:" + ((ServerConnector) server.getConnectors()[0]).getLocalPort());
    server.join();
  }
}
